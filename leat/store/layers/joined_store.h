// Several stores as one, told apart by the beginnings of their keys.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "leat/store/store.h"

namespace leat {

/// The object `3/a.jpg` is the fourth store's `a.jpg`, below that store's
/// prefix. The joined store offers reads and stats only: its parts are listed
/// and written separately.
///
/// Threads: any. Lifetime: see Store.
class JoinedStore final : public Store {
 public:
  struct Part {
    std::shared_ptr<Store> store;  ///< Parts of one bucket may share one.
    std::string prefix;            ///< Precedes every key of this part.
  };

  /// REQUIRES: at least one part.
  explicit JoinedStore(std::vector<Part> parts);

  void read(ReadRequest request, std::stop_token stop, ReadDone done) override;
  Result<ListPage> list(const ListRequest& request,
                        std::stop_token stop) override;
  Result<ObjectInfo> write(std::string_view key,
                           std::span<const std::byte> bytes,
                           std::stop_token stop) override;
  Result<ObjectInfo> stat(std::string_view key, std::stop_token stop) override;
  /// Properties that hold for every part.
  StoreTraits traits() const override;
  std::string url_of(std::string_view key) const override;
  std::string name_of(std::string_view key) const override;
  bool names_version(std::string_view key) const override;

 private:
  struct Place {
    Store* store;
    std::string key;
  };
  Result<Place> place_of(std::string_view key) const;

  std::vector<Part> parts_;
};

}  // namespace leat
