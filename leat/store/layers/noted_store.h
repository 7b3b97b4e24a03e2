// Records which files of a folder were read.
#pragma once
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "leat/base/mutex.h"
#include "leat/store/store.h"

namespace leat {

/// Passes everything on, and appends the path of each file that is read, once
/// and followed by a zero byte, to `notes`/opened-PID. `leat profile` learns
/// from these notes which files to warm up and cool down. A path that cannot be
/// recorded does not stop the read.
///
/// Threads: any. Lifetime: see Store.
class NotedStore final : public Store {
 public:
  /// `store` must be over the folder `root`.
  NotedStore(std::unique_ptr<Store> store, std::string root, std::string notes);

  void read(ReadRequest request, std::stop_token stop, ReadDone done) override;
  Result<ListPage> list(const ListRequest& request,
                        std::stop_token stop) override;
  Result<ObjectInfo> write(std::string_view key,
                           std::span<const std::byte> bytes,
                           std::stop_token stop) override;
  Result<ObjectInfo> stat(std::string_view key, std::stop_token stop) override;
  StoreTraits traits() const override;
  std::string url_of(std::string_view key) const override;

 private:
  void note(const std::string& key) LEAT_EXCLUDES(mutex_);

  const std::unique_ptr<Store> store_;
  const std::string root_;
  const std::string notes_;
  Mutex mutex_;
  std::set<std::string, std::less<>> noted_ LEAT_GUARDED_BY(mutex_);
};

}  // namespace leat
