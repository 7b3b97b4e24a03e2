#include "leat/plan/wait_model.h"

#include <algorithm>
#include <functional>

#include "leat/base/check.h"

namespace leat {

WaitModel::WaitModel(const TimeOptions& options, std::uint32_t ranks,
                     std::uint32_t ranks_per_node)
    : options_(options),
      ranks_per_node_(ranks_per_node),
      places_(
          std::max(1U, options.max_in_flight / std::max(1U, ranks_per_node))),
      ranks_(ranks) {
  LEAT_CHECK(ranks > 0 && ranks_per_node > 0);
  LEAT_CHECK(options.max_in_flight > 0);
  const std::size_t nodes = (ranks - 1) / ranks_per_node + 1;
  receives_.resize(nodes, 0.0);
  sends_.resize(nodes, 0.0);
}

void WaitModel::need(std::uint32_t rank, Source source, std::uint64_t bytes,
                     std::uint32_t from) {
  RankState& state = ranks_[rank];
  if (source == Source::kTier) {
    state.tier_free = std::max(state.tier_free, open_) + options_.hit_seconds;
    state.ready = std::max(state.ready, state.tier_free);
    return;
  }
  const bool is_peer = source == Source::kPeer;
  const double latency = is_peer ? options_.peer_seconds : options_.get_seconds;
  double done = open_ + latency;
  if (!is_peer) {
    done = std::max(done, take_place(state) + latency);
    pass(store_sends_, options_.store_bytes_per_second, bytes, latency, done);
  } else {
    pass(sends_[from], options_.peer_bytes_per_second, bytes, latency, done);
  }
  pass(receives_[rank / ranks_per_node_],
       share_of_link(rank) * options_.bytes_per_second, bytes, latency, done);
  if (!is_peer) {
    state.places.push_back(done);
    std::push_heap(state.places.begin(), state.places.end(), std::greater<>());
  }
  state.ready = std::max(state.ready, done);
}

/// When the place is free that a GET takes. Places come into being when they
/// are first used, all free from the start.
double WaitModel::take_place(RankState& state) const {
  if (state.places.size() < places_) return 0;
  std::pop_heap(state.places.begin(), state.places.end(), std::greater<>());
  const double free = state.places.back();
  state.places.pop_back();
  return free;
}

/// The part of its node's link that is for the ranks which are there.
double WaitModel::share_of_link(std::uint32_t rank) const {
  const std::size_t first = rank - rank % ranks_per_node_;
  const std::size_t there =
      std::min<std::size_t>(ranks_.size() - first, ranks_per_node_);
  return static_cast<double>(there) / ranks_per_node_;
}

/// Through a link that others use, too. It is busy from the time when the first
/// byte of the step's requests can be there: a request that waits for a place
/// holds up no other.
void WaitModel::pass(double& link_free, double bytes_per_second,
                     std::uint64_t bytes, double latency, double& done) const {
  if (bytes_per_second == 0) return;
  const double takes = static_cast<double>(bytes) / bytes_per_second;
  link_free = std::max(link_free, open_ + latency - takes) + takes;
  done = std::max(done, link_free);
}

void WaitModel::end_step() {
  double start = now_;
  for (RankState& state : ranks_) start = std::max(start, state.ready);
  wait_ += start - now_;
  now_ = start + options_.compute_seconds;
  if (options_.prefetch_steps == 0) {
    open_ = now_;
    return;
  }
  handed_over_.push_back(start);
  if (handed_over_.size() < options_.prefetch_steps) return;
  open_ = handed_over_.front();
  handed_over_.pop_front();
}

}  // namespace leat
