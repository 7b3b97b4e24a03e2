// The simulation sees what the caches are told (cache/cached_store.h): a rank's
// own reads, when each comes again, and that what another rank holds is not to
// be kept. A holder does not hear of reads elsewhere. So caches that take their
// reads in the order of the plan hold what is simulated.
//
// A policy is asked by numbers of its own, dense from 0: a table over the
// dataset for each of W caches would be W times as large.
//
// Balance looks one epoch ahead. Within a step there is little to choose: with
// equal counts, a rank loads what it does not hold of its share. But who loads
// a sample holds it next, and when that is, is known: so it goes to the rank
// that will hold least of that step.

#include "leat/plan/holder_dealing.h"

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <utility>

#include "leat/base/check.h"
#include "leat/base/errors.h"
#include "leat/plan/cache_policy_kind.h"

namespace leat {
namespace {

constexpr std::uint32_t kNobody = 0xffffffff;
/// Epochs that are looked through for the next use of a sample that a dropped
/// tail leaves out: it is read in the next one, or almost surely soon after.
constexpr std::uint64_t kHorizon = 6;

/// The cache of one rank.
struct RankCache {
  std::unique_ptr<CachePolicy> policy;
  std::vector<std::uint32_t> sample_of;  // By number.
  std::vector<AccessTime> next_of;       // By number, if balanced.
  std::vector<std::uint32_t> free;       // Numbers.
};

Result<Steps> steps_from(const HolderDealingOptions& options,
                         std::uint64_t start) {
  return Steps::make({.samples = options.samples,
                      .start = start,
                      .global_batch = options.global_batch,
                      .rank = {0, options.world_size},
                      .tail = options.tail});
}

std::uint64_t cost_of(const HolderDealingOptions& options, SampleId sample) {
  return options.cost == nullptr ? 1 : options.cost(sample);
}

/// How many samples one cache can hold, and one more that it refuses.
Result<std::uint64_t> most_records(const HolderDealingOptions& options) {
  std::uint64_t least = 1;
  if (options.unit == CapacityUnit::kBytes && options.cost != nullptr) {
    least = kNever;
    for (std::uint64_t i = 0; i < options.samples; ++i) {
      const std::uint64_t cost = cost_of(options, {i});
      if (cost != 0) least = std::min(least, cost);
    }
  }
  const std::uint64_t most =
      std::min(options.samples, options.capacity / least) + 1;
  if (most > HolderDealing::kMaxTableBytes / 4 / options.world_size) {
    return exhausted(
        "to simulate {} caches of up to {} samples takes more than {} bytes; "
        "use smaller caches, or no locality",
        options.world_size, most, HolderDealing::kMaxTableBytes);
  }
  return std::min(most, CachePolicySpec::kMaxSamples);
}

/// Gives each rank its run of a step.
void deal_runs(const Steps& steps, std::uint64_t step, std::uint32_t ranks,
               std::span<DealtSample> dealt) {
  const StepSlice all = steps.all_ranks(step);
  const std::uint64_t share = all.size() / ranks;
  const std::uint64_t longer = all.size() % ranks;
  std::size_t i = 0;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const std::size_t end = i + share + (rank < longer ? 1 : 0);
    for (; i < end; ++i) dealt[i].rank = rank;
  }
}

}  // namespace

class HolderDealing::Simulation {
 public:
  explicit Simulation(const HolderDealingOptions& options)
      : options_(options), share_(options.global_batch / options.world_size) {}

  Result<void> build() {
    LEAT_TRY(const Steps steps, steps_from(options_, 0));
    whole_epoch_.emplace(steps);
    read_end_ = options_.tail == Tail::kDrop
                    ? steps.count() * options_.global_batch
                    : options_.samples;
    LEAT_TRY(most_records_, most_records(options_));
    return restart();
  }

  Result<void> seek(std::uint64_t epoch, std::uint64_t position,
                    const std::stop_token& stop) {
    if (position > options_.samples) {
      return invalid("position {} is past the {} samples", position,
                     options_.samples);
    }
    if (epoch == epoch_ && position == position_) return {};
    // Nothing builds on an epoch that began between two steps.
    const bool is_behind = is_off_beat_ || epoch < epoch_ ||
                           (epoch == epoch_ && position < position_);
    if (is_behind) LEAT_TRY_VOID(restart());
    while (epoch_ < epoch || (step_ < steps_->count() &&
                              steps_->position_after(step_) <= position)) {
      if (stop.stop_requested()) {
        return Error(ErrorCode::kCancelled, "the dealing was stopped");
      }
      if (step_ < steps_->count()) {
        (void)next_step();
      } else {
        begin_epoch(epoch_ + 1);
      }
    }
    if (step_ < steps_->count() && position_ < position) {
      return break_step(position);
    }
    return {};
  }

  std::span<const DealtSample> next_step() {
    LEAT_CHECK(step_ < steps_->count());
    const StepSlice all = steps_->all_ranks(step_);
    look_up(all);
    if (steps_->is_whole(step_) && !is_dealt_blindly()) {
      deal_to_holders();
    } else {
      deal_runs(*steps_, step_, options_.world_size, dealt_);
    }
    for (DealtSample& dealt : dealt_) read(dealt);
    position_ = steps_->position_after(step_++);
    return dealt_;
  }

 private:
  /// Nothing is held yet, and who deals may know no more than the samples so
  /// far.
  bool is_dealt_blindly() const {
    return epoch_ == 0 && options_.order.shuffle == Shuffle::kStream;
  }

  Result<void> restart() {
    caches_.clear();
    for (std::uint32_t i = 0; i < options_.world_size; ++i) {
      RankCache cache;
      LEAT_TRY(cache.policy, make_cache_policy({.name = options_.policy,
                                                .samples = most_records_,
                                                .capacity = options_.capacity,
                                                .unit = options_.unit}));
      caches_.push_back(std::move(cache));
    }
    holder_.assign(options_.samples, kNobody);
    number_.assign(options_.samples, 0);
    orders_.clear();
    if (options_.is_balanced) {
      for (auto& table : will_hold_) {
        table.assign(whole_epoch_->count() * options_.world_size, 0);
      }
    }
    is_off_beat_ = false;
    begin_epoch(0);
    return {};
  }

  void begin_epoch(std::uint64_t epoch) {
    if (!orders_.empty()) orders_.pop_front();
    epoch_ = epoch;
    step_ = 0;
    position_ = 0;
    steps_ = whole_epoch_;
    if (options_.is_balanced) {
      std::ranges::fill(will_hold_[(epoch + 1) % 2], 0);
    }
  }

  /// Takes a step up to `position` as read, and goes on with steps from there.
  Result<void> break_step(std::uint64_t position) {
    LEAT_TRY(const Steps first,
             Steps::make({.samples = position,
                          .start = position_,
                          .global_batch = options_.global_batch,
                          .rank = {0, options_.world_size},
                          .tail = Tail::kKeep}));
    look_up(first.all_ranks(0));
    deal_runs(first, 0, options_.world_size, dealt_);
    for (DealtSample& dealt : dealt_) read(dealt);
    LEAT_TRY(const Steps rest, steps_from(options_, position));
    steps_ = rest;
    step_ = 0;
    position_ = position;
    is_off_beat_ = true;
    return {};
  }

  const EpochOrder& order_of(std::uint64_t epoch) {
    while (epoch - epoch_ >= orders_.size()) {
      orders_.emplace_back(options_.samples, options_.order, options_.blocks,
                           epoch_ + orders_.size());
    }
    return orders_[epoch - epoch_];
  }

  void look_up(const StepSlice& all) {
    const EpochOrder& order = order_of(epoch_);
    dealt_.resize(all.size());
    for (std::uint64_t i = 0; i < all.size(); ++i) {
      const std::uint64_t position = all.begin + i;
      const SampleId sample = order.at(
          position < options_.samples ? position : position % options_.samples);
      __builtin_prefetch(&holder_[sample.value]);  // Anywhere in memory.
      __builtin_prefetch(&number_[sample.value]);
      dealt_[i] = {
          .position = position, .sample = sample, .next_use = next_use(sample)};
    }
  }

  /// As NextUse for all ranks: in a block shuffle, the window of its block.
  AccessTime next_use(SampleId sample) {
    for (std::uint64_t epoch = epoch_ + 1; epoch < epoch_ + kHorizon; ++epoch) {
      const EpochOrder& order = order_of(epoch);
      const std::uint64_t position =
          has_windows(options_.order.shuffle)
              ? order.window_of(options_.blocks->block_of(sample)).begin
              : order.position_of(sample);
      if (position < read_end_) return epoch * kEpochTime + position;
    }
    return kNever;
  }

  void deal_to_holders() {
    taken_.assign(options_.world_size, 0);
    unheld_.clear();
    crowded_.clear();
    for (std::uint32_t i = 0; i < dealt_.size(); ++i) {
      const std::uint32_t holder = holder_[dealt_[i].sample.value];
      if (holder == kNobody) {
        unheld_.push_back(i);
      } else if (taken_[holder] == share_) {
        crowded_.push_back(i);
      } else {
        ++taken_[holder];
        dealt_[i].rank = holder;
      }
    }
    next_with_room_ = 0;
    for (const std::uint32_t i : unheld_) {
      dealt_[i].rank = options_.is_balanced ? least_holding(dealt_[i].next_use)
                                            : next_with_room();
      ++taken_[dealt_[i].rank];
      if (options_.is_balanced) count_as_held(dealt_[i], 1);
    }
    for (const std::uint32_t i : crowded_) {
      dealt_[i].rank = next_with_room();
      ++taken_[dealt_[i].rank];
    }
    // Whether they are kept is for the policies to say.
    if (!options_.is_balanced) return;
    for (const std::uint32_t i : unheld_) count_as_held(dealt_[i], -1);
  }

  std::uint32_t next_with_room() {
    while (taken_[next_with_room_] == share_) ++next_with_room_;
    return next_with_room_;
  }

  /// The counts that each rank will hold of the step of a time; null past the
  /// next epoch.
  std::uint32_t* will_hold(AccessTime time) {
    if (time == kNever) return nullptr;
    const std::uint64_t epoch = time / kEpochTime;
    const std::uint64_t step = time % kEpochTime / options_.global_batch;
    if (epoch > epoch_ + 1 || epoch < epoch_) return nullptr;
    return &will_hold_[epoch % 2][step * options_.world_size];
  }

  void count_as_held(const DealtSample& dealt, int by) {
    std::uint32_t* row = will_hold(dealt.next_use);
    if (row != nullptr) row[dealt.rank] += static_cast<std::uint32_t>(by);
  }

  /// Among those that have room; of equals, who has most.
  std::uint32_t least_holding(AccessTime next_use) {
    const std::uint32_t* row = will_hold(next_use);
    if (row == nullptr) return next_with_room();
    std::uint32_t best = kNobody;
    for (std::uint32_t rank = 0; rank < options_.world_size; ++rank) {
      if (taken_[rank] == share_) continue;
      if (best == kNobody || row[rank] < row[best] ||
          (row[rank] == row[best] && taken_[rank] < taken_[best])) {
        best = rank;
      }
    }
    return best;
  }

  void read(DealtSample& dealt) {
    const SampleId sample = dealt.sample;
    const AccessTime now =
        epoch_ * kEpochTime + std::min(dealt.position, options_.samples - 1);
    const std::uint32_t holder = holder_[sample.value];
    dealt.is_held = holder == dealt.rank;
    drop_.clear();
    RankCache& cache = caches_[dealt.rank];
    if (dealt.is_held) {
      plan_to_hold(dealt.rank, sample, dealt.next_use);
      cache.policy->used({number_[sample.value]}, now, dealt.next_use, drop_);
    } else if (holder == kNobody) {
      admit(dealt, now);
    } else {
      // The holder still has it, and will be dealt it when it comes again.
      plan_to_hold(holder, sample, dealt.next_use);
    }
    for (const SampleId number : drop_) drop(dealt.rank, number.value);
    if (holder_[sample.value] != dealt.rank ||
        dealt.next_use / kEpochTime >= options_.epochs) {
      dealt.next_use = kNever;
    }
  }

  void admit(const DealtSample& dealt, AccessTime now) {
    RankCache& cache = caches_[dealt.rank];
    const std::uint64_t cost = cost_of(options_, dealt.sample);
    if (cost == 0) return;
    if (cache.free.empty()) {
      if (cache.sample_of.size() == most_records_) return;
      cache.free.push_back(static_cast<std::uint32_t>(cache.sample_of.size()));
      cache.sample_of.push_back(0);
      if (options_.is_balanced) cache.next_of.push_back(kNever);
    }
    const std::uint32_t number = cache.free.back();
    if (!cache.policy->admit({number}, cost, now, dealt.next_use, drop_)) {
      return;
    }
    cache.free.pop_back();
    const auto sample = static_cast<std::uint32_t>(dealt.sample.value);
    cache.sample_of[number] = sample;
    holder_[sample] = dealt.rank;
    number_[sample] = number;
    plan_to_hold(dealt.rank, dealt.sample, dealt.next_use);
  }

  /// For balance: a held sample is wanted again then.
  void plan_to_hold(std::uint32_t rank, SampleId sample, AccessTime next_use) {
    if (!options_.is_balanced) return;
    caches_[rank].next_of[number_[sample.value]] = next_use;
    count_as_held({.rank = rank, .next_use = next_use}, 1);
  }

  void drop(std::uint32_t rank, std::uint64_t number) {
    RankCache& cache = caches_[rank];
    if (options_.is_balanced) {
      count_as_held({.rank = rank, .next_use = cache.next_of[number]}, -1);
    }
    holder_[cache.sample_of[number]] = kNobody;
    cache.free.push_back(static_cast<std::uint32_t>(number));
  }

  const HolderDealingOptions options_;
  const std::uint64_t share_;
  std::optional<Steps> whole_epoch_;
  std::uint64_t read_end_ = 0;  // Positions from here on are dropped.
  std::uint64_t most_records_ = 0;

  std::uint64_t epoch_ = 0;
  std::uint64_t position_ = 0;  // Behind all that was dealt of it.
  std::optional<Steps> steps_;  // The rest of the epoch, from where it began.
  std::uint64_t step_ = 0;
  bool is_off_beat_ = false;       // It began between two steps.
  std::deque<EpochOrder> orders_;  // From epoch_ on.

  std::vector<RankCache> caches_;
  std::vector<std::uint32_t> holder_;  // By sample: a rank, or kNobody.
  std::vector<std::uint32_t> number_;  // By sample, in its holder's cache.
  // For even and odd epochs: how many samples of a step each rank will hold.
  std::array<std::vector<std::uint32_t>, 2> will_hold_;

  std::vector<DealtSample> dealt_;
  std::vector<std::uint64_t> taken_;
  std::vector<std::uint32_t> unheld_;
  std::vector<std::uint32_t> crowded_;
  std::uint32_t next_with_room_ = 0;
  std::vector<SampleId> drop_;
};

HolderDealing::HolderDealing(std::unique_ptr<Simulation> simulation)
    : simulation_(std::move(simulation)) {}
HolderDealing::~HolderDealing() = default;

Result<std::unique_ptr<HolderDealing>> HolderDealing::make(
    const HolderDealingOptions& options) {
  if (!has_policy_trait(options.policy, &CachePolicyKind::is_foreseen)) {
    return invalid(
        "samples are dealt to caches whose policy is {}, and this one's is {}",
        policies_with(&CachePolicyKind::is_foreseen), options.policy);
  }
  if (options.samples > CachePolicySpec::kMaxSamples) {
    return invalid("{} samples are more than {} to be dealt", options.samples,
                   CachePolicySpec::kMaxSamples);
  }
  // Before anything is divided by what is not checked yet.
  LEAT_TRY_VOID(Steps::make({.samples = options.samples,
                             .global_batch = options.global_batch,
                             .rank = {0, options.world_size},
                             .tail = options.tail}));
  auto simulation = std::make_unique<Simulation>(options);
  LEAT_TRY_VOID(simulation->build());
  return std::unique_ptr<HolderDealing>(
      new HolderDealing(std::move(simulation)));
}

Result<void> HolderDealing::seek(std::uint64_t epoch, std::uint64_t position,
                                 const std::stop_token& stop) {
  return simulation_->seek(epoch, position, stop);
}

std::span<const DealtSample> HolderDealing::next_step() {
  return simulation_->next_step();
}

}  // namespace leat
