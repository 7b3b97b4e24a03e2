#include "leat/index/listing.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <utility>

#include "leat/base/mutex.h"
#include "leat/dataset/catalogue.h"
#include "leat/runtime/log.h"
#include "leat/store/list_all.h"

namespace leat {
namespace {

constexpr std::size_t kMostRemembered = 1000;

/// Opening one dataset may list it more than once.
void say_once(const std::string& text) {
  static Mutex mutex;
  static auto& said = *new std::set<std::string, std::less<>>;
  const MutexLock lock(mutex);
  if (said.size() < kMostRemembered && !said.insert(text).second) return;
  log_info(text);
}

}  // namespace

Result<std::vector<ObjectInfo>> list_data(
    Store& store, std::string_view prefix,
    const std::function<void(std::uint64_t)>& progress, std::stop_token stop,
    const Selection& selection) {
  const std::string below = key_in_store(prefix, "");
  ListAllOptions options;
  if (progress) {
    options.progress = [&](const ListProgress& now) { progress(now.objects); };
  }
  LEAT_TRY(std::vector<ObjectInfo> data,
           list_all(store, below, options, std::move(stop)));
  for (ObjectInfo& object : data) object.key.erase(0, below.size());
  return data_among(std::move(data), store.url_of(prefix), selection);
}

Result<std::vector<ObjectInfo>> data_among(std::vector<ObjectInfo> objects,
                                           std::string_view place,
                                           const Selection& selection) {
  LEAT_TRY(Selected selected, select_objects(std::move(objects), selection));
  if (!selected.left_out.empty()) {
    say_once(fmt::format("{}: {}", place, selected.left_out));
  }
  return std::move(selected.objects);
}

}  // namespace leat
