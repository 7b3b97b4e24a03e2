// The name of an object that is made from parts of others.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"

namespace leat {

/// The name says what the object is made from, so that a catalogue, a cache or
/// another process needs nothing else to request it:
///
///     train-0.parquet#leat:made;…
///
/// Such a name belongs to no object of the store itself.
struct DerivedKey {
  /// A further range that the object is made from.
  struct Range {
    std::string source;  ///< Empty: that of the key, in the key's version.
    std::string etag;
    std::uint64_t offset = 0;
    std::uint64_t length_bytes = 0;

    friend bool operator==(const Range&, const Range&) = default;
  };

  std::string source;        ///< The object that it is made from.
  std::string etag;          ///< The source's; empty: any version.
  std::uint64_t offset = 0;  ///< The range that it is made from.
  std::uint64_t length_bytes = 0;
  /// Bytes that explain these, such as a file's footer.
  std::uint64_t notes_offset = 0;
  std::uint64_t notes_bytes = 0;
  std::uint64_t size_bytes = 0;  ///< The made object's.
  /// For who makes it. Errors give its first line.
  std::string part;
  /// The maker gets the bytes of all ranges, one after the other.
  std::vector<Range> also;

  /// The bytes of all ranges.
  std::uint64_t source_bytes() const;
  std::string text() const;
  /// nullopt if `key` is an ordinary key.
  ///
  /// Errors: kCorrupt if it begins like such a name but is malformed
  static Result<std::optional<DerivedKey>> parse(std::string_view key);
};

/// Whether parse() would take `key` for the name of a made object.
bool is_derived_key(std::string_view key);

}  // namespace leat
