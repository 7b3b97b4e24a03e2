// file:///path, or a plain path: files of this machine.

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "leat/engine/schemes/schemes.h"
#include "leat/store/file/file_store.h"
#include "leat/store/layers/noted_store.h"

namespace leat {
namespace {

Result<Driver> open_file(const Url& url, const StoreOptions& options,
                         const Env& env, Metrics*) {
  std::error_code failed;
  const auto absolute = std::filesystem::absolute(url.path, failed);
  std::string path = failed ? url.path : absolute.lexically_normal().string();
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  Driver driver;
  driver.identity = "file://" + path;
  LEAT_TRY(driver.store,
           open_file_store(url.path, {.readers = options.file_readers}));
  if (const auto notes = value_of(env, "LEAT_PROFILE_NOTES")) {
    driver.store = std::make_unique<NotedStore>(std::move(driver.store),
                                                std::move(path), *notes);
  }
  return driver;
}

}  // namespace

constinit const Scheme kFileScheme = {"file", open_file};

}  // namespace leat
