#include "leat/plan/wait_model.h"

#include <algorithm>
#include <functional>

#include "leat/base/check.h"

namespace leat {

WaitModel::WaitModel(const TimeOptions& options, std::uint32_t ranks,
                     std::uint32_t ranks_per_node)
    : options_(options), ranks_per_node_(ranks_per_node), ranks_(ranks) {
  LEAT_CHECK(ranks > 0 && ranks_per_node > 0);
  LEAT_CHECK(options.max_in_flight > 0);
  link_free_.resize((ranks - 1) / ranks_per_node + 1, 0.0);
}

void WaitModel::need(std::uint32_t rank, Source source, std::uint64_t bytes) {
  RankState& state = ranks_[rank];
  if (source == Source::kTier) {
    state.tier_free = std::max(state.tier_free, open_) + options_.hit_seconds;
    state.ready = std::max(state.ready, state.tier_free);
    return;
  }
  // Places come into being when they are first used, all free from the start.
  double place_free = 0;
  if (state.places.size() == options_.max_in_flight) {
    std::pop_heap(state.places.begin(), state.places.end(), std::greater<>());
    place_free = state.places.back();
    state.places.pop_back();
  }
  double done =
      std::max(open_, place_free) +
      (source == Source::kPeer ? options_.peer_seconds : options_.get_seconds);
  if (options_.bytes_per_second > 0) {
    double& link = link_free_[rank / ranks_per_node_];
    link = std::max(
        link + static_cast<double>(bytes) / options_.bytes_per_second, done);
    done = link;
  }
  state.places.push_back(done);
  std::push_heap(state.places.begin(), state.places.end(), std::greater<>());
  state.ready = std::max(state.ready, done);
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
