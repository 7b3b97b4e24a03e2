#include "leat/index/folder_layout.h"

#include <algorithm>
#include <set>
#include <utility>

#include "leat/base/check.h"
#include "leat/base/errors.h"
#include "leat/index/container.h"

namespace leat {
namespace {

/// The top folder; nullopt for an object that lies in none.
std::optional<std::string_view> top_folder(std::string_view key) {
  const std::size_t slash = key.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  return key.substr(0, slash);
}

}  // namespace

bool is_hidden(std::string_view relative_key) {
  if (relative_key.empty() || relative_key.ends_with('/')) return true;
  if (relative_key.starts_with('.')) return true;
  if (relative_key.find("/.") != std::string_view::npos) return true;
  return relative_key == "_SUCCESS" || relative_key.ends_with("/_SUCCESS");
}

Result<Layout> layout_of(std::span<const ObjectInfo> objects) {
  const auto key_of = [](const ObjectInfo& object) { return object.key; };
  const auto shard = std::ranges::find_if(objects, is_shard, key_of);
  const auto other =
      std::ranges::find_if(objects, std::not_fn(is_shard), key_of);
  if (shard != objects.end() && other != objects.end()) {
    const auto kind = container_of(shard->key)->ending.substr(1);
    return invalid(
        "'{}' is a {} shard and '{}' is not: say which are samples "
        "(extensions=\"{}\", exclude=\"{}\"), keep shards in a folder of their "
        "own, or hide what is no data behind a dot ('.{}')",
        shard->key, kind, other->key, kind, other->key, other->key);
  }
  if (shard != objects.end()) return Layout::kShards;
  if (!objects.empty() &&
      std::ranges::all_of(objects, is_compressed_shard, key_of)) {
    return invalid(
        "'{}' is a compressed archive, of which no member can be read alone: "
        "store the shards uncompressed",
        objects.front().key);
  }
  return Layout::kObjects;
}

Result<Labels> Labels::make(std::span<const ObjectInfo> objects,
                            const std::vector<std::string>& classes) {
  std::set<std::string, std::less<>> folders;
  const ObjectInfo* outside = nullptr;
  for (const ObjectInfo& object : objects) {
    const auto folder = top_folder(object.key);
    if (!folder) {
      outside = &object;
    } else if (!folders.contains(*folder)) {
      folders.emplace(*folder);
    }
  }
  if (outside != nullptr && !folders.empty()) {
    return invalid(
        "'{}' lies beside folders such as '{}/', so it has no label: leave it "
        "out (exclude=\"{}\"), move it into a folder, hide it behind a dot, or "
        "open a folder below",
        outside->key, *folders.begin(), outside->key);
  }
  if (folders.empty() && !classes.empty()) {
    return invalid("classes were given, and there are no folders to label");
  }
  Labels labels;
  labels.classes_ = classes;
  if (classes.empty()) labels.classes_.assign(folders.begin(), folders.end());
  for (const std::string& name : labels.classes_) {
    const auto number = static_cast<std::int64_t>(labels.numbers_.size());
    if (!labels.numbers_.emplace(name, number).second) {
      return invalid("class '{}' is named twice", name);
    }
  }
  for (const std::string& folder : folders) {
    if (!labels.numbers_.contains(folder)) {
      return invalid("folder '{}/' is not among the classes given", folder);
    }
  }
  return labels;
}

std::int64_t Labels::label_of(std::string_view relative_key) const {
  const auto found = numbers_.find(top_folder(relative_key).value_or(""));
  LEAT_CHECK(found != numbers_.end());
  return found->second;
}

}  // namespace leat
