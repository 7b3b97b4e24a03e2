// A loader's options for its cache.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/clock.h"
#include "leat/base/result.h"
#include "leat/cache/file_ops.h"
#include "leat/plan/placement.h"

namespace leat {

/// In which form tiers keep samples whose ops begin alike in every epoch.
enum class CacheForm : std::uint8_t {
  kEncoded,  ///< The bytes, as they lie in the store.
  kDecoded,  ///< Keeps the output of the ops before the first that draws.
  /// Keeps the form that uses the tiers' limits best, once measured.
  kAuto,
};

/// "encoded", "decoded" or "auto". Errors: kInvalidArgument
Result<CacheForm> cache_form_of(std::string_view name);

/// On which server a record lies.
enum class PeerPlacement : std::uint8_t {
  kKey,        ///< The one that its key draws.
  kFrequency,  ///< That of the node that reads it most often (NoPFS).
};

/// "key" or "frequency". Errors: kInvalidArgument
Result<PeerPlacement> peer_placement_of(std::string_view name);

/// Every name is the same in Python (`leat.Cache`) and in `leat`, there with
/// `cache_` in front.
struct CacheOptions {
  /// Bytes of memory on this node, beside `memory`; 0: no RAM tier.
  std::uint64_t ram_bytes = 0;
  /// A folder, which jobs of this node may share; empty: no disk tier.
  std::string disk;
  /// Bytes in that folder, for all jobs; nullopt: half of the free space.
  std::optional<std::uint64_t> disk_limit_bytes;
  /// The policy that decides what is kept: one of cache_policy_names().
  std::string policy = "belady";
  /// For windowed_belady: how many reads of the job it looks ahead, at least 1;
  /// 0 for the others.
  std::uint64_t window = 0;
  /// The samples that the tiers may hold at all: for never_evict alone.
  /// kFrequency needs `epochs`.
  Placement placement = Placement::kAny;
  /// nullopt: encoded, or, with `is_auto` where the epochs are known, auto.
  std::optional<CacheForm> form;
  /// memcached servers, "host:port", that all ranks of the job share, the same
  /// ones for each; empty: no peers.
  std::vector<std::string> peers;
  /// kFrequency needs `epochs`, and servers as many as nodes, in their order.
  PeerPlacement peer_placement = PeerPlacement::kKey;
  /// A peer from which nothing comes for this long is left alone for a while.
  Nanoseconds peer_patience = std::chrono::milliseconds(100);
  /// The tiers are those of all jobs of this user and node that read the same
  /// data and say so too, and what several of them miss one fetches. RAM is
  /// then of all of them together, as the folder's limit is.
  bool is_shared = false;
  /// Among the next so many positions of a rank, those whose samples are cached
  /// are delivered first; 0: every sample comes in its order.
  std::uint64_t first_within = 0;
  /// The file calls under the tiers; null: the system's own. For tests, which
  /// fail each.
  std::shared_ptr<FileOps> file_ops = nullptr;
  /// Chooses the sizes, and the user's cache folder, from the free memory and
  /// disk.
  bool is_auto = false;
};

}  // namespace leat
