#include "leat/engine/list_url.h"

#include <string>
#include <utility>

#include "leat/dataset/catalogue.h"
#include "leat/store/list_all.h"

namespace leat {

Result<std::vector<ObjectInfo>> list_url(std::string_view url,
                                         const StoreOptions& options,
                                         const Env& env, std::stop_token stop) {
  LEAT_TRY(const OpenedStore opened, open_store(url, options, env, nullptr));
  const std::string below = key_in_store(opened.prefix, "");
  LEAT_TRY(std::vector<ObjectInfo> objects,
           list_all(*opened.store, below, {}, std::move(stop)));
  for (ObjectInfo& object : objects) {
    object.key.erase(0, below.size());
    if (!opened.store->traits().has_etags) object.etag.clear();
  }
  return objects;
}

}  // namespace leat
