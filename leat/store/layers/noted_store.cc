#include "leat/store/layers/noted_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "leat/base/owned_fd.h"

namespace leat {

NotedStore::NotedStore(std::unique_ptr<Store> store, std::string root,
                       std::string notes)
    : store_(std::move(store)),
      root_(std::move(root)),
      notes_(std::move(notes)) {}

void NotedStore::note(const std::string& key) {
  const MutexLock lock(mutex_);
  if (!noted_.insert(key).second) return;
  const std::string file = fmt::format("{}/opened-{}", notes_, ::getpid());
  const OwnedFd out(
      ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!out) return;
  const std::string path = fmt::format("{}/{}", root_, key);
  (void)!::write(out.get(), path.c_str(), path.size() + 1);
}

void NotedStore::read(ReadRequest request, std::stop_token stop,
                      ReadDone done) {
  note(request.object.key);
  store_->read(std::move(request), std::move(stop), std::move(done));
}

Result<ListPage> NotedStore::list(const ListRequest& request,
                                  std::stop_token stop) {
  return store_->list(request, std::move(stop));
}

Result<ObjectInfo> NotedStore::write(std::string_view key,
                                     std::span<const std::byte> bytes,
                                     std::stop_token stop) {
  return store_->write(key, bytes, std::move(stop));
}

Result<ObjectInfo> NotedStore::stat(std::string_view key,
                                    std::stop_token stop) {
  return store_->stat(key, std::move(stop));
}

StoreTraits NotedStore::traits() const { return store_->traits(); }

std::string NotedStore::url_of(std::string_view key) const {
  return store_->url_of(key);
}

}  // namespace leat
