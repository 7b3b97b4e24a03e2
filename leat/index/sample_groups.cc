#include "leat/index/sample_groups.h"

#include <fmt/format.h>

#include <algorithm>

#include "leat/base/errors.h"

namespace leat {

namespace {

/// True for what WebDataset keeps for notes: `__x__` at the top, as a file or
/// as a folder.
bool is_meta(std::string_view name) {
  const std::string_view top = name.substr(0, name.find('/'));
  return top.size() >= 4 && top.starts_with("__") && top.ends_with("__");
}

}  // namespace

std::optional<MemberName> split_member(std::string_view name) {
  if (is_meta(name)) return std::nullopt;
  const std::size_t slash = name.rfind('/');
  const std::size_t base = slash == std::string_view::npos ? 0 : slash + 1;
  const std::size_t dot = name.find('.', base);
  if (dot == std::string_view::npos || dot == base) return std::nullopt;
  MemberName split{.key = std::string(name.substr(0, dot)),
                   .field = std::string(name.substr(dot + 1))};
  for (char& c : split.field) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return split;
}

std::optional<MemberName> name_of(const Member& member,
                                  std::string_view shard_key) {
  if (member.field.empty()) return split_member(member.name);
  return MemberName{.key = fmt::format("{}:{}", shard_key, member.name),
                    .field = member.field};
}

SampleGroups::SampleGroups(CatalogueWriter& writer) : writer_(writer) {
  for (std::size_t i = 0; i < writer.fields().size(); ++i) {
    fields_.emplace(writer.fields()[i].name, Field{i, std::nullopt});
  }
}

Result<void> SampleGroups::add_shard(ObjectIndex shard,
                                     std::string_view shard_key,
                                     std::span<const Member> members) {
  std::optional<SampleId> sample;  // The one that members are added to.
  std::string key;
  for (const Member& member : members) {
    const auto name = name_of(member, shard_key);
    if (!name) continue;
    if (!sample || name->key != key) {
      key = name->key;
      sample = writer_.add_sample(key);
    }
    auto found = fields_.find(name->field);
    if (found == fields_.end()) {
      const std::size_t index =
          writer_.add_field({name->field, FieldKind::kBytes});
      found = fields_.emplace(name->field, Field{index, std::nullopt}).first;
    }
    Field& field = found->second;
    if (field.last_sample == sample) {
      return corrupt("sample '{}' has '{}' twice; the second is member '{}'",
                     key, name->field, member.name);
    }
    field.last_sample = sample;
    writer_.set_range(field.index, {shard, member.offset, member.size_bytes});
  }
  return {};
}

}  // namespace leat
