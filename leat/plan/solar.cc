// The order of epochs is a shortest path through all of them: from u to v it
// costs the samples that v's first reads find missing in what u leaves behind,
// taken to be each node's last reads. Found by the nearest next epoch and then
// by turning round stretches while that helps (2-opt); SOLAR uses a particle
// swarm.

#include "leat/plan/solar.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "leat/base/errors.h"
#include "leat/plan/cache_policy.h"
#include "leat/plan/simulation_checks.h"
#include "leat/plan/steps.h"

namespace leat {
namespace {

using Nodes = std::vector<std::vector<SampleId>>;

/// The index of the shortest list of those that `allowed` allows.
template <class Allowed>
std::uint32_t shortest(const Nodes& dealt, const Allowed& allowed) {
  auto best = static_cast<std::uint32_t>(dealt.size());
  for (std::uint32_t i = 0; i < dealt.size(); ++i) {
    if (!allowed(i)) continue;
    if (best == dealt.size() || dealt[i].size() < dealt[best].size()) best = i;
  }
  return best;
}

Nodes deal_runs(std::span<const SampleId> batch, std::uint32_t nodes) {
  Nodes dealt(nodes);
  std::size_t begin = 0;
  for (std::uint32_t i = 0; i < nodes; ++i) {
    const std::size_t size =
        batch.size() / nodes + (i < batch.size() % nodes ? 1 : 0);
    const auto run = batch.subspan(begin, size);
    dealt[i].assign(run.begin(), run.end());
    begin += size;
  }
  return dealt;
}

/// Now and then: a token costs more to ask than a look-up.
bool is_time_to_look(std::uint64_t turn) { return turn % 16384 == 0; }

class EpochPath {
 public:
  EpochPath(const SolarOptions& options, const std::stop_token& stop)
      : options_(options), stop_(stop), epochs_(options.epochs) {}

  /// To be called once.
  Result<std::vector<std::uint64_t>> find() {
    costs_.resize(epochs_ * epochs_, 0);
    for (std::uint64_t u = 0; u < epochs_; ++u) {
      fill_costs(u);
      if (stop_.stop_requested()) return simulation_stopped();
    }
    std::vector<std::uint64_t> path = nearest();
    for (bool is_better = true; is_better;) {
      is_better = false;
      for (std::size_t i = 1; i + 1 < path.size(); ++i) {
        if (stop_.stop_requested()) return simulation_stopped();
        for (std::size_t j = i + 1; j < path.size(); ++j) {
          const std::uint64_t before = length(path, i, j);
          std::reverse(path.begin() + static_cast<std::ptrdiff_t>(i),
                       path.begin() + static_cast<std::ptrdiff_t>(j) + 1);
          if (length(path, i, j) < before) {
            is_better = true;
          } else {
            std::reverse(path.begin() + static_cast<std::ptrdiff_t>(i),
                         path.begin() + static_cast<std::ptrdiff_t>(j) + 1);
          }
        }
      }
    }
    return path;
  }

 private:
  /// The node that reads a position, for runs in whole steps.
  std::uint32_t node_of(std::uint64_t position) const {
    const std::uint64_t share = options_.global_batch / options_.nodes;
    return static_cast<std::uint32_t>(position % options_.global_batch / share);
  }

  void fill_costs(std::uint64_t u) {
    const std::uint64_t n = options_.samples;
    const std::uint64_t reach =
        std::min(n, options_.capacity_items * options_.nodes);
    // The node, plus one, whose cache a sample is in when u ends.
    std::vector<std::uint32_t> left_on(n, 0);
    const EpochOrder order(n, {.seed = options_.seed}, nullptr, u);
    for (std::uint64_t p = n - reach; p < n; ++p) {
      if (is_time_to_look(p) && stop_.stop_requested()) return;
      left_on[order.at(p).value] = node_of(p) + 1;
    }
    for (std::uint64_t v = 0; v < epochs_; ++v) {
      const EpochOrder next(n, {.seed = options_.seed}, nullptr, v);
      for (std::uint64_t p = 0; p < reach; ++p) {
        if (is_time_to_look(p) && stop_.stop_requested()) return;
        const std::uint32_t node = left_on[next.at(p).value];
        const bool is_there = options_.dealing == Dealing::kRuns
                                  ? node == node_of(p) + 1
                                  : node != 0;
        if (!is_there) ++costs_[u * epochs_ + v];
      }
    }
  }

  std::uint64_t cost(std::uint64_t u, std::uint64_t v) const {
    return costs_[u * epochs_ + v];
  }

  /// The length of the part from before place i to behind place j.
  std::uint64_t length(const std::vector<std::uint64_t>& path, std::size_t i,
                       std::size_t j) const {
    std::uint64_t sum = 0;
    for (std::size_t k = i; k <= std::min(j + 1, path.size() - 1); ++k) {
      sum += cost(path[k - 1], path[k]);
    }
    return sum;
  }

  /// From epoch 0 to the nearest that is left, and so on.
  std::vector<std::uint64_t> nearest() const {
    std::vector<std::uint64_t> path(epochs_);
    std::iota(path.begin(), path.end(), std::uint64_t{0});
    for (std::size_t i = 1; i + 1 < path.size(); ++i) {
      const auto best =
          std::min_element(path.begin() + static_cast<std::ptrdiff_t>(i),
                           path.end(), [&](std::uint64_t a, std::uint64_t b) {
                             return cost(path[i - 1], a) < cost(path[i - 1], b);
                           });
      std::iter_swap(path.begin() + static_cast<std::ptrdiff_t>(i), best);
    }
    return path;
  }

  const SolarOptions& options_;
  const std::stop_token& stop_;
  const std::uint64_t epochs_;
  std::vector<std::uint64_t> costs_;
};

class SolarRun {
 public:
  SolarRun(const SolarOptions& options, std::vector<std::uint64_t> path,
           std::vector<std::unique_ptr<CachePolicy>> caches)
      : options_(options), path_(std::move(path)), caches_(std::move(caches)) {
    orders_.reserve(path_.size());
    for (const std::uint64_t epoch : path_) {
      orders_.emplace_back(options.samples, OrderOptions{.seed = options.seed},
                           nullptr, epoch);
    }
  }

  Result<SolarEpoch> run_epoch(std::size_t index, const SeeStep& see_step,
                               const std::stop_token& stop) {
    SolarEpoch epoch{.epoch = path_[index]};
    std::vector<SampleId> batch;
    for (std::uint64_t begin = 0; begin < options_.samples;
         begin += options_.global_batch) {
      if (stop.stop_requested()) return simulation_stopped();
      const std::uint64_t end =
          std::min(begin + options_.global_batch, options_.samples);
      batch.clear();
      batch.reserve(end - begin);
      for (std::uint64_t p = begin; p < end; ++p) {
        batch.push_back(orders_[index].at(p));
      }
      const Nodes dealt = deal_batch(batch, options_.nodes, options_.dealing,
                                     [&](std::uint32_t node, SampleId id) {
                                       return caches_[node]->holds(id);
                                     });
      if (see_step) {
        see_step(path_[index], begin / options_.global_batch, dealt);
      }
      count_step(index, begin, dealt, epoch);
    }
    return epoch;
  }

 private:
  void count_step(std::size_t index, std::uint64_t begin, const Nodes& dealt,
                  SolarEpoch& epoch) {
    std::uint64_t most = 0;
    std::uint64_t least = kNever;
    for (std::uint32_t node = 0; node < dealt.size(); ++node) {
      std::uint64_t loads = 0;
      for (const SampleId id : dealt[node]) {
        if (!read(node, id, index, begin)) ++loads;
      }
      epoch.loads += loads;
      epoch.largest_local_batch = std::max<std::uint64_t>(
          epoch.largest_local_batch, dealt[node].size());
      most = std::max(most, loads);
      least = std::min(least, loads);
    }
    epoch.uneven_loads += most - least;
  }

  bool read(std::uint32_t node, SampleId id, std::size_t index,
            std::uint64_t begin) {
    CachePolicy& cache = *caches_[node];
    const AccessTime now = index * options_.samples + begin;
    const bool is_held = cache.holds(id);
    drop_.clear();
    if (is_held) {
      cache.used(id, now, next_use(node, id, index), drop_);
    } else {
      cache.admit(id, 1, now, next_use(node, id, index), drop_);
    }
    return is_held;
  }

  /// The time when this node reads it again. If samples follow their holder,
  /// that is in the next epoch; in runs, when its position falls to the node.
  AccessTime next_use(std::uint32_t node, SampleId id, std::size_t index) {
    for (std::size_t i = index + 1; i < path_.size(); ++i) {
      const std::uint64_t position = orders_[i].position_of(id);
      if (options_.dealing != Dealing::kRuns || node_of(position) == node) {
        return i * options_.samples + position;
      }
    }
    return kNever;
  }

  std::uint32_t node_of(std::uint64_t position) const {
    const std::uint64_t begin =
        position / options_.global_batch * options_.global_batch;
    const std::uint64_t length =
        std::min(options_.global_batch, options_.samples - begin);
    const std::uint64_t share = length / options_.nodes;
    const std::uint64_t longer = length % options_.nodes;
    const std::uint64_t at = position - begin;
    const std::uint64_t in_longer = longer * (share + 1);
    return static_cast<std::uint32_t>(
        at < in_longer ? at / (share + 1) : longer + (at - in_longer) / share);
  }

  const SolarOptions& options_;
  const std::vector<std::uint64_t> path_;
  std::vector<std::unique_ptr<CachePolicy>> caches_;
  std::vector<EpochOrder> orders_;
  std::vector<SampleId> drop_;
};

}  // namespace

Nodes deal_batch(std::span<const SampleId> batch, std::uint32_t nodes,
                 Dealing dealing,
                 const std::function<bool(std::uint32_t, SampleId)>& holds) {
  if (dealing == Dealing::kRuns) return deal_runs(batch, nodes);
  Nodes dealt(nodes);
  const std::size_t share = (batch.size() + nodes - 1) / nodes;
  std::vector<SampleId> loads;
  for (const SampleId id : batch) {
    const std::uint32_t node = shortest(dealt, [&](std::uint32_t i) {
      return (dealing == Dealing::kBalanced || dealt[i].size() < share) &&
             holds(i, id);
    });
    if (node < nodes) {
      dealt[node].push_back(id);
    } else {
      loads.push_back(id);
    }
  }
  if (dealing == Dealing::kBalanced) {
    const Nodes evenly = deal_runs(loads, nodes);
    for (std::uint32_t i = 0; i < nodes; ++i) {
      dealt[i].insert(dealt[i].end(), evenly[i].begin(), evenly[i].end());
    }
    return dealt;
  }
  for (const SampleId id : loads) {
    dealt[shortest(dealt, [](std::uint32_t) { return true; })].push_back(id);
  }
  return dealt;
}

Result<std::vector<SolarEpoch>> simulate_solar(const SolarOptions& options,
                                               const SeeStep& see_step,
                                               const std::stop_token& stop) {
  constexpr std::uint64_t kMostEpochs = 4096;  // Their pairs are in memory.
  LEAT_TRY_VOID(Steps::make({.samples = options.samples,
                             .global_batch = options.global_batch,
                             .rank = {0, options.nodes}}));
  std::vector<std::uint64_t> path(options.epochs);
  std::iota(path.begin(), path.end(), std::uint64_t{0});
  if (options.epoch_order == SolarOptions::EpochOrderChoice::kFewestLoads) {
    if (options.epochs > kMostEpochs) {
      return invalid(
          "{} epochs are too many to be ordered: {} is the most; keep them as "
          "numbered",
          options.epochs, kMostEpochs);
    }
    LEAT_TRY(path, EpochPath(options, stop).find());
  }
  std::vector<std::unique_ptr<CachePolicy>> caches;
  caches.reserve(options.nodes);
  for (std::uint32_t i = 0; i < options.nodes; ++i) {
    LEAT_TRY(auto cache, make_cache_policy({.name = "belady",
                                            .samples = options.samples,
                                            .capacity = options.capacity_items,
                                            .unit = CapacityUnit::kItems}));
    caches.push_back(std::move(cache));
  }
  SolarRun run(options, std::move(path), std::move(caches));
  std::vector<SolarEpoch> epochs;
  epochs.reserve(options.epochs);
  for (std::size_t i = 0; i < options.epochs; ++i) {
    LEAT_TRY(const SolarEpoch epoch, run.run_epoch(i, see_step, stop));
    epochs.push_back(epoch);
  }
  return epochs;
}

}  // namespace leat
