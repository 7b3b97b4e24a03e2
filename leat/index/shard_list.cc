#include "leat/index/shard_list.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "leat/base/errors.h"

namespace leat {
namespace {

using nlohmann::json;

std::string_view last_part(std::string_view key) {
  return key.substr(key.rfind('/') + 1);  // npos + 1 is 0.
}

std::optional<std::uint64_t> number_in(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_unsigned()) {
    return std::nullopt;
  }
  return found->get<std::uint64_t>();
}

std::optional<ListedShard> read_shard(const json& object) {
  if (!object.is_object()) return std::nullopt;
  const auto url = object.find("url");
  const auto size_bytes = number_in(object, "filesize");
  const auto samples = number_in(object, "nsamples");
  if (url == object.end() || !url->is_string() || !size_bytes || !samples) {
    return std::nullopt;
  }
  return ListedShard{
      .name = std::string(last_part(url->get_ref<const std::string&>())),
      .size_bytes = *size_bytes,
      .samples = *samples};
}

/// The difference between a shard and the list's entry; empty if there is none.
std::string difference(const ListedShard& listed, const ObjectInfo& shard,
                       std::uint64_t samples) {
  if (listed.size_bytes != shard.size_bytes) {
    return fmt::format("'{}' has {} bytes, not {}", shard.key, shard.size_bytes,
                       listed.size_bytes);
  }
  if (listed.samples != samples) {
    return fmt::format("'{}' has {} samples, not {}", shard.key, samples,
                       listed.samples);
  }
  return "";
}

}  // namespace

Result<std::optional<std::vector<ListedShard>>> parse_shard_list(
    std::string_view text) {
  const json parsed = json::parse(text, nullptr, false);
  if (!parsed.is_object() || !parsed.contains("wids_version")) {
    return std::optional<std::vector<ListedShard>>();
  }
  const auto list = parsed.find("shardlist");
  if (number_in(parsed, "wids_version") != 1 || list == parsed.end() ||
      !list->is_array()) {
    return corrupt("it is no wids index of version 1");
  }
  std::vector<ListedShard> shards;
  for (const json& object : *list) {
    auto shard = read_shard(object);
    if (!shard) {
      return corrupt(
          "shard {} of its list lacks \"url\", \"filesize\" or \"nsamples\"",
          shards.size());
    }
    shards.push_back(*std::move(shard));
  }
  return std::optional(std::move(shards));
}

std::string differences(std::span<const ListedShard> list,
                        std::span<const ObjectInfo> shards,
                        std::span<const std::uint64_t> samples) {
  std::map<std::string_view, const ListedShard*> by_name;
  for (const ListedShard& shard : list) by_name.emplace(shard.name, &shard);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const auto found = by_name.find(last_part(shards[i].key));
    if (found == by_name.end()) {
      return fmt::format("'{}' is not in it", shards[i].key);
    }
    if (auto how = difference(*found->second, shards[i], samples[i]);
        !how.empty()) {
      return how;
    }
  }
  if (list.size() > shards.size()) {
    return fmt::format("it names {} shards and {} are there", list.size(),
                       shards.size());
  }
  return "";
}

}  // namespace leat
