// A store for tests that have only reads to say something about.
#pragma once
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "leat/store/store.h"

namespace leat::testing {

/// A subclass says what a read brings; all else is empty, and succeeds.
class FakeStore : public Store {
 public:
  Result<ListPage> list(const ListRequest&, std::stop_token) override {
    return ListPage{};
  }
  Result<ObjectInfo> write(std::string_view, std::span<const std::byte>,
                           std::stop_token) override {
    return ObjectInfo{};
  }
  Result<ObjectInfo> stat(std::string_view, std::stop_token) override {
    return ObjectInfo{};
  }
  StoreTraits traits() const override { return {}; }
  std::string url_of(std::string_view key) const override {
    return std::string(key);
  }
};

}  // namespace leat::testing
