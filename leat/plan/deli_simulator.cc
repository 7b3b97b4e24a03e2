#include "leat/plan/deli_simulator.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <memory>
#include <utility>

#include "leat/base/errors.h"
#include "leat/plan/cache_policy.h"
#include "leat/plan/fetch_ahead.h"
#include "leat/plan/simulation_checks.h"

namespace leat {
namespace {

Result<void> check(const DeliOptions& options) {
  if (options.capacity_items == 0 || options.batch == 0) {
    return invalid("capacity_items and batch must be at least 1");
  }
  // Written so that NaN is refused too.
  for (const double seconds :
       {options.compute_seconds, options.get_seconds, options.hit_seconds,
        options.fetch_seconds, options.fetch_sample_seconds}) {
    if (!(seconds >= 0)) {
      return invalid("seconds must be at least 0");
    }
  }
  return {};
}

/// Records that the server was asked for and has not inserted yet.
struct Fetch {
  double done = 0;
  std::vector<SampleId> samples;
};

class Node {
 public:
  Node(const DeliOptions& options, FetchAhead rule,
       std::unique_ptr<CachePolicy> cache)
      : options_(options), rule_(rule), cache_(std::move(cache)) {}

  Result<DeliEpoch> run_epoch(const std::vector<SampleId>& order,
                              const std::stop_token& stop) {
    DeliEpoch epoch;
    FetchAhead rule = rule_;
    auto unasked = order.begin();
    std::deque<SampleId> queue;
    std::vector<SampleId> batch;
    while (epoch.reads < order.size()) {
      if (stop.stop_requested()) return simulation_stopped();
      batch.clear();
      while (batch.size() < options_.batch) {
        if (const std::uint64_t more = rule.draw(); more != 0) {
          refill(more, order, unasked, queue, epoch);
        }
        if (queue.empty()) break;
        batch.push_back(queue.front());
        queue.pop_front();
      }
      const double before = now_;
      for (const SampleId sample : batch) read(sample, epoch);
      epoch.loading_seconds += now_ - before;
      now_ += options_.compute_seconds;
    }
    return epoch;
  }

 private:
  using Order = std::vector<SampleId>;

  void refill(std::uint64_t more, const Order& order,
              Order::const_iterator& unasked, std::deque<SampleId>& queue,
              DeliEpoch& epoch) {
    const auto count = std::min<std::uint64_t>(
        more, static_cast<std::uint64_t>(std::distance(unasked, order.end())));
    if (count == 0) return;
    insert_what_came();
    Fetch fetch;
    for (std::uint64_t i = 0; i < count; ++i, ++unasked) {
      queue.push_back(*unasked);
      if (!cache_->holds(*unasked)) fetch.samples.push_back(*unasked);
    }
    epoch.fetched += fetch.samples.size();
    // The server has one hand: a fetch waits for the one before it.
    const double begins =
        fetches_.empty() ? now_ : std::max(now_, fetches_.back().done);
    fetch.done = begins + options_.fetch_seconds +
                 options_.fetch_sample_seconds *
                     static_cast<double>(fetch.samples.size());
    fetches_.push_back(std::move(fetch));
  }

  void read(SampleId sample, DeliEpoch& epoch) {
    insert_what_came();
    const bool is_held = cache_->holds(sample);
    now_ += is_held ? options_.hit_seconds : options_.get_seconds;
    ++epoch.reads;
    if (!is_held) ++epoch.misses;
  }

  void insert_what_came() {
    while (!fetches_.empty() && fetches_.front().done <= now_) {
      for (const SampleId sample : fetches_.front().samples) {
        drop_.clear();
        if (!cache_->holds(sample)) {
          cache_->admit(sample, 1, 0, kNever, drop_);
        }
      }
      fetches_.pop_front();
    }
  }

  const DeliOptions& options_;
  const FetchAhead rule_;  // As an epoch begins.
  std::unique_ptr<CachePolicy> cache_;
  std::deque<Fetch> fetches_;  // As they were asked for, and come.
  double now_ = 0;
  std::vector<SampleId> drop_;
};

}  // namespace

Result<std::vector<DeliEpoch>> simulate_deli(
    const DeliOptions& options,
    const std::vector<std::vector<SampleId>>& epochs,
    const std::stop_token& stop) {
  LEAT_TRY_VOID(check(options));
  LEAT_TRY(const FetchAhead rule,
           FetchAhead::make({.fetch_size = options.fetch_size,
                             .queue_threshold = options.queue_threshold}));
  std::uint64_t samples = 0;
  for (const auto& order : epochs) {
    for (const SampleId id : order) samples = std::max(samples, id.value + 1);
  }
  LEAT_TRY(auto cache, make_cache_policy({.name = "fifo",
                                          .samples = samples,
                                          .capacity = options.capacity_items,
                                          .unit = CapacityUnit::kItems}));
  Node node(options, rule, std::move(cache));
  std::vector<DeliEpoch> counts;
  counts.reserve(epochs.size());
  for (const auto& order : epochs) {
    // Covers orders cut short, too.
    if (stop.stop_requested()) return simulation_stopped();
    LEAT_TRY(const DeliEpoch epoch, node.run_epoch(order, stop));
    counts.push_back(epoch);
  }
  return counts;
}

}  // namespace leat
