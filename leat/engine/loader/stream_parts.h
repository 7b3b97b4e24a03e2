// The first epoch over shards that have no index: one run after the other.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include "leat/base/env.h"
#include "leat/base/result.h"
#include "leat/engine/loader/cache_form_choice.h"
#include "leat/engine/loader/opened.h"
#include "leat/engine/loader/schedule.h"
#include "leat/engine/shard_stream.h"
#include "leat/engine/unindexed.h"
#include "leat/pipeline/epoch_run.h"

namespace leat {

/// Makes runs over those parts of a dataset whose members are known. The store
/// below already holds most of their bytes.
///
/// Threads: one at a time, the loader's lock; wait_within() and stop() any.
/// Lifetime: the others must outlive it, and it must outlive the runs.
class StreamParts {
 public:
  /// Begins to scan. REQUIRES: `opened` reads these shards ahead.
  /// Errors: kResourceExhausted, as MemoryBudget::reserve()
  static Result<std::unique_ptr<StreamParts>> open(
      const Job& job, Opened& opened, CacheFormChoice& form,
      UnindexedShards shards, std::uint64_t memory_bytes, const Env& env);

  /// The part that begins at `from`; nullopt while that part is unknown.
  /// Errors: as ShardStream::take()
  Result<std::optional<StreamPart>> take(std::uint64_t from,
                                         std::uint64_t global_batch);
  /// Starts a run over a part that was taken. Errors: as choose_fields(),
  /// Steps::make()
  Result<std::shared_ptr<EpochRun>> start(StreamPart part,
                                          const Schedule& schedule,
                                          std::uint64_t epoch,
                                          std::uint64_t from);
  /// Call when a run over a part has ended and is released.
  void end(const EpochRun& run) { of_earlier_ += run.requests(); }
  bool has_last() const { return has_last_; }
  /// The position behind the part that was started last.
  std::uint64_t next_position() const { return next_position_; }

  /// The epoch's requests with those of the given runs; either may be null.
  RunRequests requests(const EpochRun* run, const EpochRun* next) const;

  /// No more parts are wanted: the rest is indexed without reading samples.
  void leave();
  void give_memory_back();

  // See ShardStream.
  bool has_given() const { return stream_->has_given(); }
  Result<std::shared_ptr<const Catalogue>> catalogue() const {
    return stream_->catalogue();
  }
  void let_go() { stream_->let_go(); }
  void wait_within(Nanoseconds timeout, bool is_onlooker = false) {
    stream_->wait_within(timeout, is_onlooker);
  }
  void stop() { stream_->stop(); }

  /// Ends the scan. REQUIRES: no run is left. The runs' memory stays until this
  /// is destroyed, since a thread of the store may still hold some of it.
  void end_scan() { stream_.reset(); }

 private:
  StreamParts(const Job& job, Opened& opened, CacheFormChoice& form)
      : job_(job), opened_(opened), form_(form) {}
  Result<std::optional<NextUse>> next_use_of(
      const StreamPart& part, const std::shared_ptr<const BlockMap>& blocks,
      const Schedule& schedule, std::uint64_t epoch, std::uint64_t from) const;

  const Job& job_;
  Opened& opened_;
  CacheFormChoice& form_;
  /// The runs' budget. `held_` takes it and the read-ahead from the loader's.
  std::unique_ptr<MemoryBudget> budget_;
  Reservation held_;
  std::unique_ptr<ShardStream> stream_;
  std::uint64_t epoch_ = 0;
  bool has_last_ = false;
  std::uint64_t next_position_ = 0;
  std::uint64_t steps_ = 0;
  RunRequests of_earlier_;
};

}  // namespace leat
