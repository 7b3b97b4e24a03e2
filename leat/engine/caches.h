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

/// The facts that a job's tiers are made by.
struct CacheNeeds {
  std::uint64_t samples = 0;      ///< At most; so much is not taken for it.
  std::uint64_t fields = 1;       ///< Byte fields a sample.
  std::uint64_t data_bytes = 0;   ///< Bytes of all objects.
  std::uint32_t local_ranks = 1;  ///< That share the RAM.
  /// Samples may be kept decoded, some with both records for a while.
  bool may_decode = false;
  /// The folder in which local ranks hand it to each other; empty if they are
  /// not sure to be of one job: each then has its share to itself.
  std::string exchange;
  /// The peer of each sample; null: its key draws it.
  std::shared_ptr<const std::vector<std::uint16_t>> peer_of = nullptr;
  /// Which samples each tier may hold, the fastest first; empty: all.
  std::vector<std::function<bool(SampleId)>> planned = {};
  /// The catalogue's digest; asked by `is_shared`.
  Hash128 dataset = {};
};

/// The folder that the ranks of this node's job, and no others, agree on: named
/// after the user, the launcher's word for the job (else the parent process)
/// and `what` they read.
std::string exchange_folder(const Env& env, std::string_view what);

/// The folder that all jobs of this user and node agree on that read `what`.
std::string shared_folder(const Env& env, std::string_view what);

/// Removes what killed jobs of this user have left where those folders are.
void sweep_exchange_folders(const Env& env, FileOps& ops);

/// The system that tiers stand on. Outlives them.
struct CacheGround {
  SystemFileOps ops;
  SteadyClock clock;
};

/// Fills in what `options` leave open: the limit of the disk; with `is_auto`,
/// both tiers, from a quarter of the memory and half of the disk that are free,
/// and not more than the data needs. Reads a few files; blocks.
///
/// Errors:
///   kInvalidArgument  no tier and no peer at all, a limit without a folder or
///                     of 0, an unknown policy, a window or a placement that
///                     is missing or is not of that policy
Result<CacheOptions> choose_cache(const CacheOptions& options,
                                  const CacheNeeds& needs, const Limits& limits,
                                  const Env& env);

/// Doubts about options that ask for more than there is, a sentence each with
/// its remedy: more RAM than this process may have, or more of the disk than is
/// free. Blocks as above.
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

/// Bounds a tier of it from now on: see CachedStore::set_share().
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
