#include "leat/index/companions.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "leat/index/container.h"
#include "leat/index/folder_layout.h"

namespace leat {
namespace {

using Stems = std::set<std::string_view>;

std::string_view without_ending(std::string_view key) {
  return key.substr(0, key.rfind('.'));
}

bool has_companion_ending(std::string_view key) {
  constexpr std::array<std::string_view, 4> kEndings = {".idx", ".index",
                                                        ".json", ".parquet"};
  return std::ranges::any_of(
      kEndings, [&](std::string_view ending) { return key.ends_with(ending); });
}

Stems stems_of(const std::vector<ObjectInfo>& objects) {
  Stems stems;
  for (const ObjectInfo& object : objects) {
    if (is_shard(object.key)) stems.insert(without_ending(object.key));
  }
  return stems;
}

/// True for "a/0_stats.json" where there is "a/0.tar".
bool is_called_as_a_shard(std::string_view key, const Stems& stems) {
  std::size_t cut = key.size();
  while ((cut = key.find_last_of("._-/", cut - 1)) != std::string_view::npos &&
         cut != 0 && key[cut] != '/') {
    if (stems.contains(key.substr(0, cut))) return true;
  }
  return false;
}

}  // namespace

Result<SortedObjects> sort_objects(std::vector<ObjectInfo> objects) {
  SortedObjects sorted;
  if (const Stems stems = stems_of(objects); !stems.empty()) {
    std::size_t loose = 0;
    const auto is_data = [&](const ObjectInfo& object) {
      if (!has_companion_ending(object.key)) return true;
      return !is_called_as_a_shard(object.key, stems) &&
             ++loose > kMostLooseCompanions;
    };
    // The keys that `stems` looks at stay where they are until it is done.
    std::vector<bool> keeps;
    keeps.reserve(objects.size());
    for (const ObjectInfo& object : objects) keeps.push_back(is_data(object));
    for (std::size_t i = 0; i < objects.size(); ++i) {
      if (!keeps[i]) sorted.companions.push_back(objects[i]);
    }
    std::size_t at = 0;
    std::erase_if(objects, [&](const ObjectInfo&) { return !keeps[at++]; });
  }
  sorted.data = std::move(objects);
  LEAT_TRY(sorted.layout, layout_of(sorted.data));
  return sorted;
}

const ObjectInfo* member_index_of(const ObjectInfo& shard,
                                  const std::vector<ObjectInfo>& companions) {
  const Container* const kind = container_of(shard.key);
  if (kind == nullptr || kind->read_index == nullptr) return nullptr;
  const std::string_view key = shard.key;
  const std::size_t slash = key.rfind('/');
  const std::size_t base = slash == std::string_view::npos ? 0 : slash + 1;
  for (const std::string_view stem :
       {without_ending(key), key, key.substr(0, key.find('.', base))}) {
    const std::string wanted = std::string(stem) + ".idx";
    const auto found =
        std::ranges::lower_bound(companions, wanted, {}, &ObjectInfo::key);
    if (found != companions.end() && found->key == wanted) return &*found;
  }
  return nullptr;
}

std::vector<ObjectInfo> loose_jsons(const SortedObjects& objects) {
  const Stems stems = stems_of(objects.data);
  std::vector<ObjectInfo> loose;
  for (const ObjectInfo& object : objects.companions) {
    if (object.key.ends_with(".json") &&
        !is_called_as_a_shard(object.key, stems)) {
      loose.push_back(object);
    }
  }
  return loose;
}

bool is_same(const SortedObjects& a, const SortedObjects& b) {
  const auto are_same = [](const std::vector<ObjectInfo>& some,
                           const std::vector<ObjectInfo>& others) {
    return std::ranges::equal(some, others,
                              [](const ObjectInfo& x, const ObjectInfo& y) {
                                return x.key == y.key && x.etag == y.etag &&
                                       x.size_bytes == y.size_bytes;
                              });
  };
  return a.layout == b.layout && are_same(a.data, b.data) &&
         are_same(a.companions, b.companions);
}

}  // namespace leat
