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
  /// The ending of its objects' names, which no other kind has: ".tar".
  std::string_view ending;
  /// Other endings that some use for the same.
  std::span<const std::string_view> other_endings = {};
  /// Whether the number of a shard may follow the ending: see
  /// without_shard_number().
  bool is_numbered_behind = false;

  /// Makes a scanner for a container of this size.
  std::unique_ptr<MemberScanner> (*scan)(std::uint64_t size_bytes) = nullptr;

  /// The members of a container, in order, from the text of an index beside
  /// it, which is checked against the container. Null: indexes are not
  /// used.
  ///
  /// Errors: as `read`; kInvalidArgument, kCorrupt: the index does not fit
  Result<std::vector<Member>> (*read_index)(std::string_view text,
                                            std::uint64_t size_bytes,
                                            const ReadShard& read) = nullptr;

  /// The endings of compressed containers, from which single members cannot be
  /// read.
  std::span<const std::string_view> compressed = {};
};

/// All kinds: containers/containers.cc.
std::span<const Container* const> containers();

/// The kind of the object with that name; null: it is not a container.
const Container* container_of(std::string_view name);

inline bool is_shard(std::string_view name) {
  return container_of(name) != nullptr;
}

/// True for a container's name followed by a compression's ending.
bool is_compressed_shard(std::string_view name);

/// The name without the number of a shard behind it, as TensorFlow and Beam
/// write it: "train.tfrecord" of "train.tfrecord-00003-of-00016".
std::string_view without_shard_number(std::string_view name);

}  // namespace leat
