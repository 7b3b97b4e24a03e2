// The time that training waits for its reads: an event model of prefetching.
#pragma once
#include <cstdint>
#include <deque>
#include <vector>

namespace leat {

/// A node's requests in flight, a loader's default.
inline constexpr std::uint32_t kDefaultInFlight = 128;

/// The times and bandwidths of the model. All seconds are at least 0; 0 means
/// no delay.
struct TimeOptions {
  double compute_seconds = 0;  ///< A training step, for each batch.
  double get_seconds = 0;      ///< From sending a GET to its last byte, without
                               ///< competition on any link.
  double peer_seconds = 0;     ///< The same, from another node.
  double hit_seconds = 0;      ///< For a sample of a rank, one after another.
  /// The bandwidth into a node, GETs and peers together; 0: no limit.
  double bytes_per_second = 0;
  /// The bandwidth of the store to all nodes together; 0: no limit.
  double store_bytes_per_second = 0;
  /// The bandwidth from a node to others that read from it; 0: no limit.
  double peer_bytes_per_second = 0;
  /// GETs of a node, shared by its ranks, at least one each; requests to peers
  /// come on top. At least 1.
  std::uint32_t max_in_flight = kDefaultInFlight;
  /// How many steps ahead of the current one are requested; 0: a step is
  /// requested when training asks for it.
  std::uint32_t prefetch_steps = 2;
};

/// The source of a sample.
enum class Source : std::uint8_t { kTier, kPeer, kStore };

/// The clock of a synchronous job: a step starts when the last rank has its
/// batch. Requests are sent in plan order, once the window and, for a GET,
/// one of the rank's `max_in_flight` places are free. A reply passes a link
/// after all earlier requests, and no sooner than its latency. Nothing is
/// random.
///
/// Threads: one at a time.
class WaitModel {
 public:
  /// REQUIRES: ranks > 0, ranks_per_node > 0. The last node may have fewer: it
  /// has their share of a node's link, as if the others used theirs.
  WaitModel(const TimeOptions& options, std::uint32_t ranks,
            std::uint32_t ranks_per_node);

  /// `rank` needs a sample for the running step; `from` is the node that has
  /// it, for a peer. O(log max_in_flight).
  /// REQUIRES: the rank and the node exist.
  void need(std::uint32_t rank, Source source, std::uint64_t bytes,
            std::uint32_t from = 0);
  /// Call when all needs of the step are known: it is delivered and computed.
  void end_step();

  /// Since the beginning: the time at which the last step's compute ended.
  double seconds() const { return now_; }
  /// The part of it that the job, that is its slowest rank, waited for data.
  double wait_seconds() const { return wait_; }

 private:
  struct RankState {
    std::vector<double> places;  // A min-heap: when each becomes free.
    double tier_free = 0;
    double ready = 0;  // When the running step's batch is complete.
  };
  double take_place(RankState& state) const;
  double share_of_link(std::uint32_t rank) const;
  void pass(double& link_free, double bytes_per_second, std::uint64_t bytes,
            double latency, double& done) const;

  const TimeOptions options_;
  const std::uint32_t ranks_per_node_;
  const std::uint32_t places_;  // The places of each rank for requests in
                                // flight.
  std::vector<RankState> ranks_;
  // The time at which the last byte requested so far has passed:
  std::vector<double> receives_;  // For each node.
  std::vector<double> sends_;     // For each node, to others.
  double store_sends_ = 0;
  std::deque<double> handed_over_;  // The last `prefetch_steps` steps.
  double open_ = 0;                 // When the running step may be requested.
  double now_ = 0;
  double wait_ = 0;
};

}  // namespace leat
