// A run of a shard's bytes that many samples share.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/ids.h"
#include "leat/base/mutex.h"
#include "leat/base/result.h"
#include "leat/dataset/catalogue.h"
#include "leat/metrics/stalls.h"
#include "leat/pipeline/cache_hits.h"
#include "leat/runtime/memory_budget.h"
#include "leat/store/store.h"

namespace leat {

/// Bytes fetched once for all samples of a block, and freed when the last of
/// them has been decoded.
///
/// Threads: any.
class Piece final : public ReadObserver {
 public:
  /// Called once, when the bytes are there or the read has failed.
  using Waiter = std::function<void(const Piece&)>;

  /// `hits` must outlive the reads.
  Piece(ByteRange range, Reservation reservation, std::uint32_t reads,
        CacheHits* hits)
      : object(range.object),
        begin(range.offset),
        bytes(range.length_bytes),
        reservation_(std::move(reservation)),
        hits_(hits),
        reads_left_(reads) {}

  void backs_off(TimePoint from, TimePoint until) override;
  void held_back(TimePoint from, TimePoint until) override;
  void cache_looked(TimePoint from, TimePoint until) override;
  void peer_asked(TimePoint from, TimePoint until) override;
  void other_job_awaited(TimePoint from, TimePoint until) override;
  void cache_had(CacheLevel level, std::uint64_t size_bytes) override;

  /// The number of its reads that were sent again since the last call.
  std::uint64_t take_retries();
  /// One of its reads has returned.
  void read_done(Result<void> result);
  /// Runs `waiter` once the piece is complete: immediately if it already is.
  void when_done(Waiter waiter);

  /// REQUIRES: called from a waiter or later.
  std::optional<Error> error() const;
  TimePoint fetched() const;
  std::vector<Delay> delays() const;

  const ObjectIndex object;
  const std::uint64_t begin;
  Buffer bytes;

 private:
  const Reservation reservation_;
  CacheHits* const hits_;
  mutable Mutex mutex_;
  std::uint32_t reads_left_ LEAT_GUARDED_BY(mutex_);
  std::optional<Error> error_ LEAT_GUARDED_BY(mutex_);
  SampleTimes times_ LEAT_GUARDED_BY(mutex_);
  std::uint64_t retries_ LEAT_GUARDED_BY(mutex_) = 0;
  std::vector<Waiter> waiters_ LEAT_GUARDED_BY(mutex_);
};

}  // namespace leat
