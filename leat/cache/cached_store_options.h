// How a cache goes about it, and with whom.
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
  /// Stands in front of url_of() in the name of each record, to tell endpoints
  /// apart. Never holds credentials.
  std::string place;
  /// From one epoch to the next, as hints tell time. Records that an
  /// earlier run has left of the same source are not freed before this run has
  /// been through an epoch.
  AccessTime epoch_time = kEpochTime;
  /// A read that nobody has is decided when it is sent, not when it comes: so
  /// a policy that goes by the order of reads alone is told that of the plan,
  /// whichever comes first. One that knows what comes next needs it not.
  bool decides_when_sent = false;
  std::size_t threads = 4;  ///< That look records up.
  /// Copies of records that wait to be written; past it they are not kept.
  std::uint64_t queue_bytes = std::uint64_t{64} << 20;
  Nanoseconds refresh_every = TierWriterOptions().refresh_every;
  Nanoseconds catch_up_every = TierWriterOptions().catch_up_every;
};

/// The files by which several jobs over the same tiers agree; either may be
/// null.
struct CacheSharing {
  std::unique_ptr<RecordClaims> claims = nullptr;
  std::unique_ptr<JobBoard> board = nullptr;
  /// A record that is made of a range does not take the place of its bytes:
  /// there is room for those of all samples.
  bool keeps_bytes = false;
};

}  // namespace leat
