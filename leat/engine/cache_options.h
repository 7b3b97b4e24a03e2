// What a loader is told about its cache.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/clock.h"
#include "leat/base/result.h"

namespace leat {

/// In which form tiers keep samples whose ops begin alike in every epoch.
enum class CacheForm : std::uint8_t {
  kEncoded,  ///< The bytes, as they lie in the store.
  kDecoded,  ///< What ops make of them before the first that draws.
  kAuto,     ///< What serves the limits of the tiers best, once measured.
};

/// "encoded", "decoded" or "auto". Errors: kInvalidArgument
Result<CacheForm> cache_form_of(std::string_view name);

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
  /// nullopt: encoded, or, with `is_auto` where the epochs are known, auto.
  std::optional<CacheForm> form;
  /// memcached servers, "host:port", that all ranks of the job share, the same
  /// ones for each; empty: no peers.
  std::vector<std::string> peers;
  /// A peer from which nothing comes for this long is left alone for a while.
  Nanoseconds peer_patience = std::chrono::milliseconds(100);
  /// The tiers are those of all jobs of this user and node that read the same
  /// data and say so too, and what several of them miss one fetches. RAM is
  /// then of all of them together, as the folder's limit is.
  bool is_shared = false;
  /// Of the next so many positions of a rank, those whose samples are cached
  /// are delivered first; 0: every sample comes in its order.
  std::uint64_t first_within = 0;
  /// Chooses the sizes, and the user's cache folder, from what is free.
  bool is_auto = false;
};

}  // namespace leat
