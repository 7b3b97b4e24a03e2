// How a cache works, and with which other jobs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "leat/cache/job_board.h"
#include "leat/cache/record_claims.h"
#include "leat/cache/tier_writer.h"
#include "leat/plan/cache_policy.h"

namespace leat {

struct CachedStoreOptions {
  /// Prefixes url_of() in the name of each record, to tell endpoints apart.
  /// Never holds credentials.
  std::string place;
  /// The time from one epoch to the next, on the clock of hints. Records that
  /// an earlier run left from the same source are not freed until this run has
  /// gone through an epoch.
  AccessTime epoch_time = kEpochTime;
  /// A missing record is decided on when it is requested, not when it arrives,
  /// so a policy that depends on the order of reads sees the plan's order. A
  /// policy that knows what comes next does not need this.
  bool decides_when_sent = false;
  std::size_t threads = 4;  ///< Threads for look-ups.
  /// Bytes of records waiting to be written; beyond it they are not kept.
  std::uint64_t queue_bytes = std::uint64_t{64} << 20;
  Nanoseconds refresh_every = TierWriterOptions().refresh_every;
  Nanoseconds catch_up_every = TierWriterOptions().catch_up_every;
};

/// The files by which jobs over the same tiers coordinate; either may be
/// null.
struct CacheSharing {
  std::unique_ptr<RecordClaims> claims = nullptr;
  std::unique_ptr<JobBoard> board = nullptr;
  /// A record made from a range does not replace its bytes: there is room for
  /// those of all samples.
  bool keeps_bytes = false;
};

}  // namespace leat
