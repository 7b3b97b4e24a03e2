// Groups the members of shards into samples, as WebDataset does.
#pragma once
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "leat/base/ids.h"
#include "leat/base/result.h"
#include "leat/codec/member_scanner.h"
#include "leat/dataset/catalogue_writer.h"

namespace leat {

/// The two parts of a member's name: "a/b.seg.png" is the field "seg.png" of
/// sample "a/b".
struct MemberName {
  std::string key;
  std::string field;  ///< In lower case.
};

/// Splits at the first dot of the base name. Nullopt for a member of no sample:
/// no dot, nothing before it, or below `__meta__` at the top.
std::optional<MemberName> split_member(std::string_view name);

/// The parts of a member of this shard: as its name tells; or its own field, of
/// the sample "shard:name".
std::optional<MemberName> name_of(const Member& member,
                                  std::string_view shard_key);

/// Adds shards to a catalogue, one after another.
///
/// Consecutive members of one key are a sample. The fields are those of all
/// samples, in order of their first appearance; a sample misses what it lacks.
class SampleGroups {
 public:
  /// Fields that `writer` has already come first.
  explicit SampleGroups(CatalogueWriter& writer);

  /// Adds a shard of this key. Errors: kCorrupt if a sample has the same field
  /// twice.
  Result<void> add_shard(ObjectIndex shard, std::string_view shard_key,
                         std::span<const Member> members);

 private:
  struct Field {
    std::size_t index;
    std::optional<SampleId> last_sample;
  };

  CatalogueWriter& writer_;
  std::map<std::string, Field, std::less<>> fields_;
};

}  // namespace leat
