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

/// The form in which tiers keep samples whose ops begin alike in every epoch.
enum class CacheForm : std::uint8_t {
  kEncoded,  ///< The bytes, as stored.
  kDecoded,  ///< Keeps the output of the ops before the first random one.
  /// Measures, then keeps the form that makes the best use of the tiers.
  kAuto,
};

/// "encoded", "decoded" or "auto". Errors: kInvalidArgument
Result<CacheForm> cache_form_of(std::string_view name);

/// The server that holds a record.
enum class PeerPlacement : std::uint8_t {
  kKey,        ///< The one that its key selects.
  kFrequency,  ///< The node that reads it most often (NoPFS).
};

/// "key" or "frequency". Errors: kInvalidArgument
Result<PeerPlacement> peer_placement_of(std::string_view name);

/// Every option has the same name in Python (`leat.Cache`) and, with the prefix
/// `cache_`, in `leat`.
struct CacheOptions {
  /// Bytes of memory on this node, beside `memory`; 0: no RAM tier.
  std::uint64_t ram_bytes = 0;
  /// A folder that jobs of this node may share; empty: no disk tier.
  std::string disk;
  /// Bytes in that folder, for all jobs; nullopt: half of the free space.
  std::optional<std::uint64_t> disk_limit_bytes;
  /// The policy that decides what is kept: one of cache_policy_names().
  std::string policy = "belady";
  /// For windowed_belady: how many of the job's reads it looks ahead, at least
  /// 1. Must be 0 for the other policies.
  std::uint64_t window = 0;
  /// Which samples the tiers may hold at all; for never_evict alone. kFrequency
  /// needs `epochs`.
  Placement placement = Placement::kAny;
  /// nullopt: encoded; with `is_auto` and a known number of epochs, auto.
  std::optional<CacheForm> form;
  /// memcached servers, "host:port", shared by all ranks of the job, each of
  /// which must list the same ones; empty: no peers.
  std::vector<std::string> peers;
  /// The job's secret, known to its ranks alone: a value that was not sealed
  /// with it is not used. Empty: LEAT_PEER_SECRET, or whoever reaches the
  /// servers is believed. Never logged.
  std::string peer_secret;
  /// kFrequency needs `epochs`, and servers as many as nodes, in their order.
  PeerPlacement peer_placement = PeerPlacement::kKey;
  /// A peer that sends nothing for this long is avoided for a while.
  Nanoseconds peer_patience = std::chrono::milliseconds(100);
  /// The tiers are shared by all jobs of this user and node that read the same
  /// data and set this too. A record that several of them miss is fetched by
  /// one. The RAM limit then covers all of them, as the folder's limit does.
  bool is_shared = false;
  /// Among this many next positions of a rank, cached samples are delivered
  /// first; 0: every sample comes in its order.
  std::uint64_t first_within = 0;
  /// The file calls under the tiers; null: the system's own. Tests pass one
  /// that makes calls fail.
  std::shared_ptr<FileOps> file_ops = nullptr;
  /// Chooses the sizes, and the user's cache folder, from the free memory and
  /// disk.
  bool is_auto = false;
};

}  // namespace leat
