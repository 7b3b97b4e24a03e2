// Finds the members of a container without reading their bodies.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "leat/base/result.h"

namespace leat {

/// A file in a container: where its bytes lie.
struct Member {
  std::string name;  ///< Relative, as it stands there: "./" stays.
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
  /// The field that it is, if the container says so itself: consecutive members
  /// of one name are a sample, called after shard and name. Empty: the name
  /// tells sample and field, as in WebDataset.
  std::string field = {};
  friend bool operator==(const Member&, const Member&) = default;
};

/// Says which bytes of one container it wants next, is given them, and tells
/// the members found.
///
/// Does no I/O, so a container in a bucket is scanned by ranged reads.
///
///     while (const auto want = scanner.wants()) {
///       read(want->offset, want->length) …
///       LEAT_TRY_VOID(scanner.feed(bytes, members));
///     }
///
/// Threads: one at a time.
class MemberScanner {
 public:
  /// A range of the container.
  struct Want {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
  };

  virtual ~MemberScanner() = default;

  /// The range to feed next, which may be empty if a container is cut short;
  /// nullopt at its end.
  virtual std::optional<Want> wants() const = 0;

  /// Takes the bytes of the last want, whole, and adds the members that they
  /// tell of. Each lies within the container.
  ///
  /// REQUIRES: wants(), and bytes.size() == wants()->length.
  /// Errors:
  ///   kCorrupt          no such container, or cut short; names the offset
  ///   kInvalidArgument  one of a kind that cannot be read by ranges
  virtual Result<void> feed(std::span<const std::byte> bytes,
                            std::vector<Member>& members) = 0;
};

}  // namespace leat
