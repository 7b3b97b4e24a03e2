#include "leat/engine/loader/runs.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "leat/cache/cached_store.h"

namespace leat {
namespace {

/// Half of its samples took no longer, from plan to slot.
Nanoseconds usual_fetch(const BatchWork& work) {
  std::vector<Nanoseconds> times;
  for (std::size_t row = 0; row < work.size(); ++row) {
    const SampleTimes& one = work.times_of(row);
    times.push_back(one.finished - one.reserved);
  }
  if (times.empty()) return {};
  const auto middle = times.begin() + std::ssize(times) / 2;
  std::ranges::nth_element(times, middle);
  return *middle;
}

}  // namespace

Runs::Runs(const Job& job, Schedule& schedule, Opened& opened,
           CacheFormChoice& form, const Control& control, Account& account)
    : job_(job),
      schedule_(schedule),
      opened_(opened),
      form_(form),
      control_(control),
      account_(account) {}

void Runs::begin_whole() {
  CachedStore* const cached = opened_.store.cached;
  context_ = std::make_unique<RunContext>(
      context_over(job_, opened_, form_.decoded(), *schedule_.catalogue(),
                   schedule_.fields(), schedule_.blocks(), *opened_.budget));
  context_->cached = cached;
  context_->homes =
      shard_homes_of(job_, *schedule_.catalogue(), schedule_.blocks(), 0);
  // A random draw may bring a sample often, so it has no single turn.
  if (cached != nullptr && job_.order.shuffle != Shuffle::kDrawn) {
    context_->board = cached->board();
  }
  begin_lookahead();
}

void Runs::begin_in_parts(StreamParts& parts) {
  parts_ = &parts;
  is_in_parts_ = true;
}

Result<void> Runs::adopt_catalogue() {
  if (parts_ == nullptr || schedule_.catalogue() != nullptr) return {};
  LEAT_TRY(std::shared_ptr<const Catalogue> made, parts_->catalogue());
  if (made == nullptr) return {};
  LEAT_TRY_VOID(schedule_.adopt(std::move(made)));
  Result<void> opened = form_.open(schedule_.fields(), schedule_);
  if (opened) opened = schedule_.plan_dealing();
  if (!opened) {
    schedule_.forget_catalogue();
    return opened;
  }
  begin_whole();
  return {};
}

Result<std::shared_ptr<EpochRun>> Runs::start(
    std::uint64_t epoch, std::uint64_t from, const PlanLimits& limits,
    std::unique_ptr<HolderDealing> dealing,
    const std::vector<std::uint64_t>& behind) const {
  LEAT_TRY_VOID(schedule_.check_known(epoch));
  LEAT_TRY(const Steps steps, schedule_.steps_of(epoch, from));
  LEAT_TRY(std::optional<NextUse> next, schedule_.next_use(epoch, from));
  if (schedule_.deals() && dealing == nullptr) {
    LEAT_TRY(dealing, schedule_.make_dealing(epoch));
  }
  LEAT_TRY(std::optional<ReadyFirst> first,
           schedule_.ready_first(steps, behind));
  return std::make_shared<EpochRun>(
      *context_,
      EpochPlanOptions{
          .epoch = epoch,
          .order = EpochOrder(schedule_.catalogue()->samples(), job_.order,
                              schedule_.blocks(), epoch),
          .steps = steps,
          .next_use = std::move(next),
          .dealing = std::move(dealing),
          .ready_first = std::move(first)},
      limits);
}

Result<std::shared_ptr<EpochRun>> Runs::start_part(std::uint64_t epoch,
                                                   std::uint64_t from) {
  LEAT_TRY(std::optional<StreamPart> part,
           parts_->take(from, schedule_.global_batch()));
  if (!part) return std::shared_ptr<EpochRun>();
  if (part->is_last) LEAT_TRY_VOID(adopt_catalogue());
  return parts_->start(*std::move(part), schedule_, epoch, from);
}

Result<void> Runs::open(const Position& position,
                        std::shared_ptr<EpochRun>& unused) {
  if (run_ != nullptr) return {};
  Result<void> adopted = adopt_catalogue();
  unused = std::move(next_);
  if (is_in_parts_) {
    LEAT_TRY(run_, start_part(position.epoch, position.at));
    return {};
  }
  if (!adopted) return adopted;
  if (schedule_.catalogue() == nullptr) return {};
  if (unused != nullptr && unused->epoch() == position.epoch &&
      position.at == 0) {
    run_ = std::move(unused);
    run_->adopt();
    look_ahead();
    return {};
  }
  LEAT_TRY_VOID(schedule_.check_known(position.epoch));
  LEAT_TRY_VOID(begin_cache_plan(position));
  PlanLimits limits;
  if (lookahead_) limits.lookahead = lookahead_->samples();
  if (job_.options.fetch_ahead) {
    LEAT_TRY(limits.fetch_ahead, FetchAhead::make(*job_.options.fetch_ahead));
  }
  LEAT_TRY(run_, start(position.epoch, position.at, limits, nullptr,
                       position.left_behind));
  look_ahead();
  return {};
}

Runs::Left Runs::leave(const Position& position, std::uint64_t to_epoch,
                       std::uint64_t to_position) {
  Left left;
  // Nothing was read in vain yet if another epoch begins instead; but dealing
  // by what caches hold needs the catalogue, except in the first epoch.
  if (is_in_parts_ && (parts_->has_given() || to_position != 0 ||
                       (deals_to_holders(job_.locality()) && to_epoch != 0))) {
    parts_->leave();
    is_in_parts_ = false;
    // It is the next part of the epoch, which open() would take for the whole.
    if (run_ != nullptr) left.next = drop_next_of(run_->epoch());
  }
  const bool stays = to_epoch == position.epoch && to_position == position.at;
  const bool goes_on = to_epoch == position.epoch + 1 && to_position == 0;
  if (!stays && !goes_on) is_another_plan_ = true;
  left.run = std::move(run_);
  return left;
}

/// If reads were reordered, tells the cache when each of its records is read
/// next, from here on.
Result<void> Runs::begin_cache_plan(const Position& position) {
  const bool is_another = std::exchange(is_another_plan_, false);
  if (!is_another || opened_.store.cached == nullptr) return {};
  LEAT_TRY(std::optional<NextUse> next,
           schedule_.next_use(position.epoch, position.at));
  const std::uint64_t end = schedule_.samples().value_or(0);
  const bool has_homes = job_.locality() == Locality::kSticky;
  const RankRun& readers = job_.readers;
  leat::begin_cache_plan(
      opened_.store, next->time_of(position.epoch, position.at),
      [&](SampleId sample) {
        const std::uint32_t home =
            has_homes ? home_of(sample, readers.world_size) : readers.first;
        if (sample.value >= end || home < readers.first ||
            home - readers.first >= readers.count) {
          return kNever;
        }
        if (schedule_.is_in_lanes()) {
          return next->block_at_or_after(schedule_.blocks()->block_of(sample),
                                         position.epoch, position.at);
        }
        return next->at_or_after(sample, position.epoch, position.at);
      });
  return {};
}

void Runs::plan_ahead() {
  if (job_.options.fetch_ahead) return;  // Its sampler covers one epoch only.
  if (next_ != nullptr || run_ == nullptr || !run_->has_planned_all()) return;
  if (is_in_parts_ && !parts_->has_last()) {
    // An error is reported when its turn comes.
    if (auto part = start_part(run_->epoch(), parts_->next_position())) {
      next_ = *std::move(part);
    }
    return;
  }
  if (is_in_parts_) parts_->let_go();
  if (!adopt_catalogue()) return;
  const std::uint64_t next_epoch = run_->epoch() + 1;
  const auto& epochs = job_.options.epochs;
  if (epochs && next_epoch >= *epochs) return;
  PlanLimits limits;
  if (!epochs) limits.samples = control_.now().in_flight;
  if (lookahead_) {
    limits.lookahead = schedule_.global_batch() / job_.rank.world_size;
  }
  if (auto started = start(next_epoch, 0, limits, run_->take_dealing(), {})) {
    next_ = *std::move(started);
  }
  look_ahead();
}

std::shared_ptr<EpochRun> Runs::drop_next_of(std::uint64_t epoch) {
  if (next_ == nullptr || next_->epoch() != epoch) return nullptr;
  return std::move(next_);
}

std::shared_ptr<EpochRun> Runs::drop_next_unless(std::uint64_t epoch) {
  if (next_ == nullptr || next_->epoch() == epoch) return nullptr;
  return std::move(next_);
}

Runs::Left Runs::end() {
  is_in_parts_ = false;
  return {.run = std::move(run_), .next = std::move(next_)};
}

bool Runs::leave_part() {
  if (!is_in_parts_) return false;
  const bool has_next = next_ != nullptr && next_->epoch() == run_->epoch();
  if (!has_next && parts_->has_last()) return false;
  parts_->end(*run_);
  run_ = has_next ? std::move(next_) : nullptr;
  next_.reset();
  return true;
}

void Runs::end_epoch() {
  if (parts_ != nullptr) parts_->give_memory_back();
}

void Runs::begin_lookahead() {
  if (context_ == nullptr || context_->pieces != nullptr) return;
  if (job_.options.fetch_ahead) return;
  // Twice the window, so that this never leaves it empty.
  lookahead_.emplace(schedule_.global_batch() / job_.rank.world_size,
                     2 * control_.now().in_flight);
}

void Runs::look_ahead() {
  if (!lookahead_) return;
  const std::uint64_t samples = lookahead_->samples();
  account_.set_lookahead(samples);
  if (run_ != nullptr) run_->look_ahead(samples);
  if (next_ == nullptr) return;
  // The limit covers both, but the next batch can always be completed.
  const std::uint64_t before = run_ == nullptr ? 0 : run_->untaken();
  next_->look_ahead(std::max(samples - std::min(samples, before),
                             schedule_.global_batch() / job_.rank.world_size));
}

void Runs::took(const BatchWork& work,
                const std::optional<Account::Step>& step) {
  if (lookahead_ && step) {
    using Arrival = Lookahead::Arrival;
    lookahead_->took(
        {.samples = work.size(),
         .fetch = work.longest_fetch(),
         .usual = step->is_bound ? usual_fetch(work) : Nanoseconds{},
         .busy = step->busy,
         .wait = step->wait,
         .arrival = step->is_bound  ? Arrival::kBound
                    : step->is_late ? Arrival::kLate
                                    : Arrival::kOnTime});
  }
  look_ahead();
}

void Runs::ask_for_at_least(std::uint64_t samples) {
  if (lookahead_) lookahead_->ask_for_at_least(samples);
  look_ahead();
}

std::uint64_t Runs::lookahead() const {
  return lookahead_ ? lookahead_->samples() : 0;
}

bool Runs::can_go_back() const {
  return context_ != nullptr && context_->pieces == nullptr &&
         context_->locality == Locality::kNone;
}

void Runs::count_requests() {
  if (!is_in_parts_ && run_ == nullptr) return;
  const bool is_ahead =
      run_ != nullptr && next_ != nullptr && next_->epoch() != run_->epoch();
  account_.set_requests(is_in_parts_ ? parts_->requests(run_.get(), next_.get())
                                     : run_->requests(),
                        is_ahead ? next_->requests().sent : 0);
}

}  // namespace leat
