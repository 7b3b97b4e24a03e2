// When a record is next read by any of the jobs that share it.
#pragma once
#include <cstdint>

#include "leat/cache/cache_use.h"
#include "leat/cache/job_board.h"

namespace leat {

/// Next uses, on this job's clock. The next use of a record is the first read
/// by any job, each in its own order; jobs write those times on a board. So the
/// tiers hold what a policy would hold that saw the reads of all jobs as one
/// stream.
///
/// Threads: any; it never changes.
class JobUses {
 public:
  /// The next use of bytes that stay beside the records made from them: a
  /// record makes way for its bytes, never the other way round.
  static constexpr AccessTime kAlways = 0;

  /// `board` (null: no other jobs) must outlive it. `keeps_bytes`: bytes stay
  /// beside the records made from them.
  JobUses(const JobBoard* board, AccessTime epoch_time, bool keeps_bytes)
      : board_(board), epoch_time_(epoch_time), keeps_bytes_(keeps_bytes) {}

  bool has_board() const { return board_ != nullptr; }
  AccessTime epoch_time() const { return epoch_time_; }

  /// By this job's reads alone.
  PlannedRecord planned(const CacheUse& use) const;
  /// `told`, except that a record this job never reads again may still be used.
  AccessTime of_this_job(AccessTime told) const;
  /// The next use by any job; `own` is this job's.
  AccessTime of_any(AccessTime own, std::uint64_t sample, AccessTime now) const;
  AccessTime of_any(const CacheUse& use, const PlannedRecord& own) const;

 private:
  const JobBoard* const board_;
  const AccessTime epoch_time_;
  const bool keeps_bytes_;
};

}  // namespace leat
