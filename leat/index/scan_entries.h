// The format of a ScanLog's entries: numbers in 8 bytes, little-endian, and
// texts as their length and bytes.
//
//     the listing  the shards, then their companions; of each: how many, and
//                  key, ETag and size of every one
//     a shard      its note, how many members, and name, offset, size and
//                  field of every one
//     a failure    the number of its code, and its message
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "leat/base/error.h"
#include "leat/index/companions.h"
#include "leat/index/shard_scan.h"

namespace leat {

std::string pack(const SortedObjects& objects);
std::string pack(const ScannedShard& shard);
std::string pack(const Error& error);

/// The other way round; nullopt for what none of the above has made.
std::optional<SortedObjects> unpack_listing(std::span<const std::byte> bytes);
std::optional<ScannedShard> unpack_shard(std::span<const std::byte> bytes);
std::optional<Error> unpack_failure(std::span<const std::byte> bytes);

}  // namespace leat
