// The key of a cache's record.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "leat/base/hash.h"

namespace leat {

/// The name of a record: the same in every process, job and run that reads the
/// same bytes, and another one as soon as the object is written anew.
using RecordKey = Hash128;

/// Hashes a key as evenly as it is: it is a hash.
struct RecordKeyHash {
  std::size_t operator()(const RecordKey& key) const noexcept {
    return static_cast<std::size_t>(key.low);
  }
};

/// Which bytes: a range of one version of one object.
struct RecordName {
  /// The object's place, endpoint included; never holds credentials.
  std::string_view url;
  std::string_view etag;
  std::uint64_t offset = 0;
  std::uint64_t length_bytes = 0;
  /// The operations that made the record, unless it is the bytes themselves.
  std::optional<Hash128> made_by{};
};

/// XXH3-128 of the four, each text after its length, and of what made it, if
/// anything did.
RecordKey record_key(const RecordName& name);

}  // namespace leat
