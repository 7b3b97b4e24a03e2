// One row of a batch in preparation.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/hash.h"
#include "leat/base/mutex.h"
#include "leat/metrics/stalls.h"
#include "leat/pipeline/decoded_form.h"
#include "leat/pipeline/excluded_samples.h"
#include "leat/pipeline/piece.h"
#include "leat/pipeline/program/sample_view.h"
#include "leat/plan/substitutes.h"
#include "leat/runtime/memory_budget.h"
#include "leat/store/store.h"
#include "leat/store/use_board.h"

namespace leat {

class BatchWork;

/// One row of a batch, from its plan to its slot.
///
/// Threads: the planner until its reads are sent; then the thread that brings
/// its last byte; then one thread of the executor.
class SampleWork final : public ReadObserver, public SampleView {
 public:
  /// The bytes of one column of the catalogue, in a buffer, a piece or the slot
  /// itself. All fields made from the column share them.
  struct Fetched {
    std::size_t column = 0;
    Buffer buffer;
    Reservation reservation;
    std::shared_ptr<Piece> piece;
    std::span<const std::byte> bytes;
    /// Null unless a cache keeps the column decoded.
    std::unique_ptr<RecordWork> record_work;
  };

  void backs_off(TimePoint from, TimePoint until) override;
  void held_back(TimePoint from, TimePoint until) override;
  bool is_awaited() const override;
  void cache_looked(TimePoint from, TimePoint until) override;
  void peer_asked(TimePoint from, TimePoint until) override;
  void other_job_awaited(TimePoint from, TimePoint until) override;
  void cache_had(CacheLevel level, std::uint64_t bytes) override;
  /// Adds the wait of a piece that this sample waited for.
  void waited_with(const Piece& piece);
  /// The number of its own reads that were sent again.
  std::uint64_t retries() const;

  /// Keeps the first failure.
  void fail(Error error);
  bool has_failed() const;

  /// Another sample takes the row, which has not been read: its bytes, reads
  /// and failure are those of `next` from now on. It keeps the memory that was
  /// reserved for the row.
  void begin_again(SampleId next);
  /// Memory for bytes of the row's new sample: what the row had, and what the
  /// budget has free. The rest goes beyond the budget: whoever waited for it
  /// might wait for the batch that waits for the row.
  Reservation take_kept(std::uint64_t bytes, MemoryBudget& budget);
  /// Returns its bytes and their reservations.
  void let_go();

  BatchWork* batch = nullptr;
  std::size_t row = 0;
  SampleId id;       ///< The one that is read for the row now.
  SampleId planned;  ///< The one that the order has there.
  /// Why `planned` was passed over, and the draws for its place.
  std::optional<Excluded> excluded;
  std::optional<Substitutes> substitutes;
  std::uint32_t tries = 0;  ///< Substitutes that were passed over themselves.
  bool is_valid = true;
  std::uint64_t position = 0;  ///< In the epoch; past its end for padding.
  std::uint64_t order = 0;
  /// Counted from the running epoch; for jobs that share the cache.
  ReadTurn next_turn = 0;
  bool is_to_make = false;  ///< A record, of it; see BatchQueue.
  std::vector<Fetched> fetched;
  /// The bytes of a column; empty if it was not fetched, or has none.
  std::span<const std::byte> bytes_of(std::size_t column) const override;
  /// Null unless the sample is tried in both forms.
  FormTrial* trial_of(std::size_t column) const;
  /// The decoded record of a column; empty if there is none.
  std::span<const std::byte> record_of(std::size_t column) const override;
  /// Reads that have not returned, plus one while the planner is sending.
  std::atomic<std::uint32_t> pending = 1;
  SampleTimes times;
  CacheHits* hits = nullptr;  ///< The hits of the epoch; set by the planner.
  Hash128 hash;
  /// Set by the thread that finishes the batch.
  std::optional<Error> error() const;

 private:
  mutable Mutex mutex_;
  std::uint64_t retries_ LEAT_GUARDED_BY(mutex_) = 0;
  Reservation kept_;
  std::optional<Error> error_ LEAT_GUARDED_BY(mutex_);
};

}  // namespace leat
