// How a run fetches bytes: of a sample, or of a piece of a shard.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

#include "leat/pipeline/batch_work.h"
#include "leat/pipeline/cache_hits.h"
#include "leat/pipeline/epoch_plan.h"
#include "leat/pipeline/piece.h"
#include "leat/pipeline/piece_plan.h"
#include "leat/pipeline/plan_memory.h"
#include "leat/pipeline/run_context.h"

namespace leat {

/// Requests that a run has sent.
struct RunRequests {
  std::uint64_t sent = 0;     ///< To the store; each read counted once.
  std::uint64_t retried = 0;  ///< Sent again after a failure.
  std::uint64_t bytes = 0;    ///< Asked of the store.
  std::uint64_t misses = 0;   ///< Reads that no cache could answer.
  // Reads that a cache answered instead.
  std::uint64_t ram_hits = 0;
  std::uint64_t disk_hits = 0;
  std::uint64_t peer_hits = 0;
  std::uint64_t decoded_hits = 0;  ///< Among these, by a decoded record.

  RunRequests& operator+=(const RunRequests& more);
};

/// Reserves memory in plan order and sends reads that never wait for any.
///
/// Threads:  the planner's, but fetch_substitute(), send(), count_retries() and
///           requests(), which are any's.
/// Lifetime: context and plan outlive it, and it every read it sent.
class SampleReads {
 public:
  using Done = std::function<void(Result<void>)>;
  /// Called when the last read of a sample has returned: any thread.
  using Arrive = std::function<void(const std::shared_ptr<BatchWork>&,
                                    SampleWork&, TimePoint)>;

  SampleReads(const RunContext& context, EpochPlan& plan, std::stop_token stop,
              Arrive arrive);

  /// Reads the bytes of a field, alone or with a piece's. REQUIRES: the column
  /// is neither missing nor empty, and not being fetched.
  ///
  /// Errors: as PlanMemory::reserve()
  Result<void> fetch(SampleWork& sample, std::size_t field, ByteRange range);
  /// The same for a sample that took another's place: always alone, and never
  /// waits for memory. Threads: any.
  void fetch_substitute(SampleWork& sample, std::size_t field, ByteRange range);
  /// Takes the bytes from a piece, which is read if it was not. REQUIRES:
  /// shares_piece().
  Result<void> fetch_from_piece(SampleWork& sample, std::size_t field,
                                ByteRange range);
  /// Whether fetch() does. A piece belongs to one object: fields in other
  /// objects are read alone. So are the samples of a piece for which the other
  /// pieces in use leave no room.
  bool shares_piece(const SampleWork& sample, ByteRange range);
  /// Call when every field of the sample was planned.
  void release_piece(const SampleWork& sample);
  /// Call when nothing more will be planned.
  void release_pieces() { pieces_.clear(); }

  /// Errors: as PlanMemory::reserve()
  Result<Reservation> reserve(std::uint64_t bytes, std::string_view what);
  bool can_fit(std::uint64_t bytes) const { return memory_.can_fit(bytes); }
  std::uint64_t room_bytes() const { return memory_.room_bytes(); }
  /// Bytes that the planner cannot free by waiting: see PlanMemory. Pieces that
  /// it shares out are among them.
  void hold(std::uint64_t bytes) { memory_.hold(bytes); }
  void let_go(std::uint64_t bytes) { memory_.let_go(bytes); }
  std::uint64_t held_bytes() const { return memory_.held_bytes(); }
  /// The batch's memory is freed without the planner; pieces serve others too.
  void let_go_of_batch();

  /// Calls `done` once for each of the `reads`.
  void send(ByteRange range, std::uint32_t reads, std::span<std::byte> into,
            ReadObserver* observer, std::optional<ReadHint> hint,
            const Done& done);
  /// Returns the `done` of a read that serves this sample alone. The last of
  /// the sample's reads to call it reports that the sample has arrived.
  Done arrival_of(SampleWork& sample) const;

  CacheHits& hits() { return hits_; }
  void count_retries(std::uint64_t retries) { retried_ += retries; }
  std::uint64_t sent() const { return sent_; }
  RunRequests requests() const;

 private:
  struct PlannedPiece {
    PiecePlan plan;
    std::uint64_t samples_left;              // Not yet planned.
    bool is_alone;                           // Its samples are read one by one.
    std::shared_ptr<Piece> piece = nullptr;  // Null until one asks for it.
  };
  /// Padding repeats samples whose pieces are long gone, so it reads them
  /// alone.
  bool takes_pieces(const SampleWork& sample) const {
    return context_.pieces != nullptr && sample.is_valid;
  }
  std::vector<PlannedPiece>& pieces_of(const SampleWork& sample,
                                       ByteRange range);
  /// Returns null if none of these pieces contains the sample.
  static PlannedPiece* piece_with(std::vector<PlannedPiece>& pieces,
                                  SampleId sample);
  Result<std::shared_ptr<Piece>> read_piece(PlannedPiece& planned,
                                            SampleId first);
  bool has_room_for(const PiecePlan& plan) const;

  const RunContext& context_;
  EpochPlan& plan_;
  const std::stop_token stop_;
  const Arrive arrive_;
  PlanMemory memory_;
  std::map<std::uint64_t, std::vector<PlannedPiece>> pieces_;  // By block.
  CacheHits hits_;
  std::atomic<std::uint64_t> sent_ = 0;
  std::atomic<std::uint64_t> bytes_ = 0;
  std::atomic<std::uint64_t> retried_ = 0;
};

}  // namespace leat
