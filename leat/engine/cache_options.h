// What a loader is told about its cache.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace leat {

/// Every name is the same in Python (`leat.Cache`) and in `leat`, there with
/// `cache_` in front.
struct CacheOptions {
  /// Bytes of memory, of this node, beside `memory`; 0: no RAM tier.
  std::uint64_t ram_bytes = 0;
  /// A folder, which jobs of this node may share; empty: no disk tier.
  std::string disk;
  /// Bytes in that folder, of all jobs; nullopt: half of what is free there.
  std::optional<std::uint64_t> disk_limit_bytes;
  /// What is kept when not all fits: belady, never_evict, lru or fifo.
  std::string policy = "belady";
  /// Chooses the sizes, and the user's cache folder, from what is free.
  bool is_auto = false;
};

}  // namespace leat
