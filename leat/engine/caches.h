// Puts the tiers of a cache in front of a store.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leat/base/clock.h"
#include "leat/base/env.h"
#include "leat/base/hash.h"
#include "leat/base/ids.h"
#include "leat/base/result.h"
#include "leat/cache/file_ops.h"
#include "leat/engine/cache_options.h"
#include "leat/engine/stores.h"
#include "leat/metrics/metrics.h"
#include "leat/runtime/limits.h"
#include "leat/store/record_cache.h"

namespace leat {

/// The facts about a job that determine its tiers.
struct CacheNeeds {
  std::uint64_t samples = 0;      ///< An upper bound; costs no memory.
  std::uint64_t fields = 1;       ///< Byte fields of a sample.
  std::uint64_t data_bytes = 0;   ///< Bytes of all objects.
  std::uint32_t local_ranks = 1;  ///< They share the RAM.
  /// Samples may be kept decoded, and for a while some have both records.
  bool may_decode = false;
  /// The folder in which local ranks hand the tier to each other. Empty if they
  /// cannot be sure to be of one job: each then keeps its share to itself.
  std::string exchange;
  /// The peer of each sample; null: its key selects the peer.
  std::shared_ptr<const std::vector<std::uint16_t>> peer_of = nullptr;
  /// Which samples each tier may hold, fastest tier first; empty: all.
  std::vector<std::function<bool(SampleId)>> planned = {};
  /// The catalogue's digest; needed for `is_shared`.
  Hash128 dataset = {};
};

/// The folder that the ranks of this job on this node agree on, and no others.
/// Named after the user, the launcher's id of the job (or the parent process)
/// and `what` they read.
std::string exchange_folder(const Env& env, std::string_view what);

/// The folder that all jobs of this user and node that read `what` agree on.
std::string shared_folder(const Env& env, std::string_view what);

/// Removes what this user's killed jobs have left in those folders.
void sweep_exchange_folders(const Env& env, FileOps& ops);

/// The parts of the system that the tiers use. Outlives them.
struct CacheGround {
  SystemFileOps ops;
  SteadyClock clock;
};

/// Fills in what `options` leave open: the disk's limit and, with `is_auto`,
/// both tiers, from a quarter of the free memory and half of the free disk, but
/// not more than the data needs. Leaves out a disk tier whose folder others can
/// write to, and logs that once. Reads a few files; blocks.
///
/// Errors:
///   kInvalidArgument  no tier and no peer at all, a limit without a folder or
///                     of 0, an unknown policy, a window or a placement that
///                     is missing or is not of that policy
Result<CacheOptions> choose_cache(const CacheOptions& options,
                                  const CacheNeeds& needs, const Limits& limits,
                                  const Env& env);

/// Warnings about options, each a sentence with its remedy: more RAM than this
/// process may have, more of the disk than is free, peers that anyone may write
/// to. Blocks as above.
std::vector<std::string> doubts_about(const CacheOptions& options,
                                      const Limits& limits);

/// "1 GiB of RAM and 20 GiB in /nvme/leat", for logs.
std::string describe(const CacheOptions& options);

/// Wraps `opened.store`, and sets `opened.cached`. Blocks: reads the index of
/// what earlier jobs left.
///
/// REQUIRES: choose_cache() has made `options`. `ground` and `metrics` outlive
///           the store.
/// Errors: as choose_cache(); kPermissionDenied, kNotFound, kUnavailable where
///         the folder cannot be used at all
Result<std::unique_ptr<Store>> wrap_in_cache(OpenedStore& opened,
                                             const CacheOptions& options,
                                             CacheNeeds needs,
                                             CacheGround& ground,
                                             Metrics* metrics);

/// Sets a new bound for one of its tiers: see CachedStore::set_share().
/// REQUIRES: `opened.cached` is set.
void set_cache_share(const OpenedStore& opened, CacheLevel level,
                     std::optional<std::uint64_t> bytes);

/// See CachedStore::begin_plan(). REQUIRES: `opened.cached` is set.
void begin_cache_plan(
    const OpenedStore& opened, std::uint64_t now,
    const std::function<std::uint64_t(SampleId)>& next_use_of);

/// See CachedStore::set_least_queue(). REQUIRES: `opened.cached` is set.
void set_least_cache_queue(const OpenedStore& opened, std::uint64_t bytes);

}  // namespace leat
