#include "leat/store/list_unsorted.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>

#include "leat/base/errors.h"

namespace leat {
namespace {

using Found = std::map<std::string, ObjectInfo, std::less<>>;

Error bad_list(Store& store, std::string_view prefix, std::string_view why) {
  return corrupt("{} {}", store.url_of(prefix), why);
}

/// Adds a page to what was found.
Result<void> take(Store& store, std::string_view prefix, ListPage page,
                  Found& found) {
  const std::size_t before = found.size();
  const bool is_empty = page.objects.empty();
  for (ObjectInfo& object : page.objects) {
    if (!object.key.starts_with(prefix)) {
      return bad_list(store, prefix, "lists other keys than asked for");
    }
    std::string key = object.key;
    found.insert_or_assign(std::move(key), std::move(object));
  }
  if (!is_empty && found.size() == before && !page.resume.empty()) {
    return bad_list(store, prefix,
                    "repeats its list: a page brings nothing new");
  }
  return {};
}

}  // namespace

Result<std::vector<ObjectInfo>> list_unsorted(
    Store& store, std::string_view prefix,
    const std::function<void(const ListProgress&)>& progress,
    const std::stop_token& stop) {
  Found found;
  ListProgress told;
  ListRequest request{.prefix = std::string(prefix)};
  do {
    if (stop.stop_requested()) {
      return Error(ErrorCode::kCancelled,
                   fmt::format("listing {}: cancelled", store.url_of(prefix)));
    }
    LEAT_TRY(ListPage page, store.list(request, stop));
    request.resume = page.resume;
    LEAT_TRY_VOID(take(store, prefix, std::move(page), found));
    ++told.lists;
    told.objects = found.size();
    if (progress) progress(told);
  } while (!request.resume.empty());
  std::vector<ObjectInfo> all;
  all.reserve(found.size());
  for (auto& [key, object] : found) {
    if (!is_passed_over(object, prefix.size()))
      all.push_back(std::move(object));
  }
  return all;
}

}  // namespace leat
