// How long training waits for what it reads: an event model of prefetching.
#pragma once
#include <cstdint>
#include <deque>
#include <vector>

namespace leat {

/// What things take. All seconds are at least 0; 0 means at once.
struct TimeOptions {
  double compute_seconds = 0;  ///< Of the training step, a batch.
  double get_seconds = 0;      ///< From sending a GET to its last byte,
                               ///< with the link to itself.
  double peer_seconds = 0;     ///< The same, from another node's cache.
  double hit_seconds = 0;      ///< Of a rank, a sample, one after another.
  /// Of a node, over GETs and peers together; 0: no limit.
  double bytes_per_second = 0;
  std::uint32_t max_in_flight = 64;  ///< Of a rank. At least 1.
  /// How many steps ahead of the one handed over are requested; 0: a step is
  /// requested when training asks for it.
  std::uint32_t prefetch_steps = 2;
};

/// Where a sample comes from.
enum class Source : std::uint8_t { kTier, kPeer, kStore };

/// The clock of a synchronous job: a step starts when the last rank has its
/// batch. Requests are sent in plan order, as soon as the window and one of the
/// rank's `max_in_flight` places are free. Nothing is random.
///
/// Threads: one at a time.
class WaitModel {
 public:
  /// REQUIRES: ranks > 0, ranks_per_node > 0. The last node may have fewer.
  WaitModel(const TimeOptions& options, std::uint32_t ranks,
            std::uint32_t ranks_per_node);

  /// `rank` needs a sample for the running step. O(log max_in_flight).
  void need(std::uint32_t rank, Source source, std::uint64_t bytes);
  /// All have said what they need: the step is handed over and computed.
  void end_step();

  /// Since the beginning: the time at which the last step's compute ended.
  double seconds() const { return now_; }
  /// Of it: what the job, that is its slowest rank, waited for data.
  double wait_seconds() const { return wait_; }

 private:
  struct RankState {
    std::vector<double> places;  // A min-heap: when each becomes free.
    double tier_free = 0;
    double ready = 0;  // When the running step's batch is complete.
  };
  const TimeOptions options_;
  const std::uint32_t ranks_per_node_;
  std::vector<RankState> ranks_;
  std::vector<double> link_free_;   // Of each node.
  std::deque<double> handed_over_;  // The last `prefetch_steps` steps.
  double open_ = 0;                 // When the running step may be requested.
  double now_ = 0;
  double wait_ = 0;
};

}  // namespace leat
