// The key of a record in a cache.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "leat/base/hash.h"

namespace leat {

/// The name of a record: the same in every process, job and run that reads the
/// same bytes, and a different one once the object is rewritten.
using RecordKey = Hash128;

/// The key is a hash already, so it is evenly spread.
struct RecordKeyHash {
  std::size_t operator()(const RecordKey& key) const noexcept {
    return static_cast<std::size_t>(key.low);
  }
};

/// Identifies bytes: a range of one version of one object.
struct RecordName {
  /// The object's place, endpoint included; never holds credentials.
  std::string_view url;
  std::string_view etag;
  std::uint64_t offset = 0;
  std::uint64_t length_bytes = 0;
  /// The operations that made the record; empty for the bytes themselves.
  std::optional<Hash128> made_by{};
};

/// XXH3-128 of the four fields, each text after its length, and of `made_by`,
/// if set.
RecordKey record_key(const RecordName& name);

}  // namespace leat
