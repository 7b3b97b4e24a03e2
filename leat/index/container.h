// The kinds of containers: objects that hold the files of many samples. A
// container in a dataset is a shard.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/codec/member_scanner.h"

namespace leat {

/// Fills `into` with the bytes of a shard from `offset` on.
using ReadShard = std::function<Result<void>(std::uint64_t offset,
                                             std::span<std::byte> into)>;

struct Container {
  /// The end of its objects' names, and of no other kind's: ".tar".
  std::string_view ending;

  /// A new scanner for a container of so many bytes.
  std::unique_ptr<MemberScanner> (*scan)(std::uint64_t size_bytes) = nullptr;

  /// The members of a container, in order, as the text of an index beside it
  /// tells, which is checked against the container. Null: no index is looked
  /// at.
  ///
  /// Errors: as `read`; kInvalidArgument, kCorrupt: the index does not fit
  Result<std::vector<Member>> (*read_index)(std::string_view text,
                                            std::uint64_t size_bytes,
                                            const ReadShard& read) = nullptr;

  /// The ends of the names of compressed ones, of which no member can be read
  /// alone.
  std::span<const std::string_view> compressed = {};
};

/// All of them: containers/containers.cc.
std::span<const Container* const> containers();

/// The kind of an object of that name; null: it is no container.
const Container* container_of(std::string_view name);

inline bool is_shard(std::string_view name) {
  return container_of(name) != nullptr;
}

/// True for a container's name with the end of a compression behind it.
bool is_compressed_shard(std::string_view name);

}  // namespace leat
