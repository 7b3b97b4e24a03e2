// A store in front of another.
#pragma once
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "leat/store/store.h"

namespace leat {

/// Passes everything but reads on to another store, unless a derived class says
/// otherwise. Threads and lifetime: as Store says.
class StoreWrapper : public Store {
 public:
  Result<ListPage> list(const ListRequest& request,
                        std::stop_token stop) override {
    return inner_->list(request, std::move(stop));
  }
  Result<ObjectInfo> write(std::string_view key,
                           std::span<const std::byte> bytes,
                           std::stop_token stop) override {
    return inner_->write(key, bytes, std::move(stop));
  }
  Result<ObjectInfo> stat(std::string_view key, std::stop_token stop) override {
    return inner_->stat(key, std::move(stop));
  }
  StoreTraits traits() const override { return inner_->traits(); }
  std::string url_of(std::string_view key) const override {
    return inner_->url_of(key);
  }
  std::string name_of(std::string_view key) const override {
    return inner_->name_of(key);
  }
  bool names_version(std::string_view key) const override {
    return inner_->names_version(key);
  }

 protected:
  explicit StoreWrapper(std::unique_ptr<Store> inner)
      : inner_(std::move(inner)) {}

  /// Outlives all that a derived class holds.
  const std::unique_ptr<Store> inner_;
};

}  // namespace leat
