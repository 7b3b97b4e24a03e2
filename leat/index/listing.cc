#include "leat/index/listing.h"

#include <string>
#include <utility>

#include "leat/dataset/catalogue.h"
#include "leat/index/folder_layout.h"
#include "leat/store/list_all.h"

namespace leat {

Result<std::vector<ObjectInfo>> list_data(
    Store& store, std::string_view prefix,
    const std::function<void(std::uint64_t)>& progress, std::stop_token stop) {
  const std::string below = key_in_store(prefix, "");
  ListAllOptions options;
  if (progress) {
    options.progress = [&](const ListProgress& now) { progress(now.objects); };
  }
  LEAT_TRY(std::vector<ObjectInfo> data,
           list_all(store, below, options, std::move(stop)));
  for (ObjectInfo& object : data) object.key.erase(0, below.size());
  return data_among(std::move(data));
}

Result<std::vector<ObjectInfo>> data_among(std::vector<ObjectInfo> objects) {
  std::erase_if(objects, [](const ObjectInfo& o) { return is_hidden(o.key); });
  if (objects.empty()) {
    return Error(ErrorCode::kNotFound,
                 "there are no objects (hidden ones do not count)");
  }
  return objects;
}

}  // namespace leat
