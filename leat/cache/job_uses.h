// When a record is read next, by whichever of the jobs that share it.
#pragma once
#include <cstdint>

#include "leat/cache/cache_use.h"
#include "leat/cache/job_board.h"

namespace leat {

/// Next uses on the clock of this job. A record is used next when the first of
/// all jobs reads it, each by its own order: the jobs write on a board when
/// that is. So what is held is what a policy would hold that saw one stream of
/// reads, theirs all together.
///
/// Threads: any; it never changes.
class JobUses {
 public:
  /// The next use of bytes that stay beside what is made of them: that is
  /// pushed out for them, and never the other way round.
  static constexpr AccessTime kAlways = 0;

  /// `board` (null: no other job tells) outlives it. `keeps_bytes`: bytes stay
  /// beside what is made of them.
  JobUses(const JobBoard* board, AccessTime epoch_time, bool keeps_bytes)
      : board_(board), epoch_time_(epoch_time), keeps_bytes_(keeps_bytes) {}

  bool has_board() const { return board_ != nullptr; }
  AccessTime epoch_time() const { return epoch_time_; }

  /// As this job's reads tell.
  PlannedRecord planned(const CacheUse& use) const;
  /// As told, but for what this job never reads again.
  AccessTime of_this_job(AccessTime told) const;
  /// The next use by any job, where `own` is that of this one.
  AccessTime of_any(AccessTime own, std::uint64_t sample, AccessTime now) const;
  AccessTime of_any(const CacheUse& use, const PlannedRecord& own) const;

 private:
  const JobBoard* const board_;
  const AccessTime epoch_time_;
  const bool keeps_bytes_;
};

}  // namespace leat
