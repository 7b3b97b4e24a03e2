#include "leat/tune/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace leat {
namespace {

// A change takes hold while what was under way leaves; then it is measured.
constexpr double kSettleSeconds = 0.5;
constexpr double kMeasureSeconds = 1.4;
constexpr double kLongestMeasure = 6;
constexpr std::uint64_t kFewSamples = 32;
// Pieces of shards bring many samples at once: a few of them say nothing.
constexpr double kFewReads = 16;
constexpr double kWindowSeconds = 3;
constexpr double kFirstSeconds = 0.9;

// A smaller gain is noise: the tuner undoes the change.
constexpr double kLeastKeptGain = 0.03;
// If the time of a read, a task or a training step changes by more than this
// factor, the world has changed.
constexpr double kRateDrift = 1.4;
constexpr std::size_t kDriftLooks = 2;

// A store is well with no more of its reads failed, and late: of times that
// are log-normal, one of 160 is late if all are waited for.
constexpr double kFewFail = 0.003;
constexpr double kFewLate = 0.012;

// After an epoch that took as long the next one may be another world: a cache
// is warm. Shorter ones are noise.
constexpr double kLongEpochSeconds = 20;

constexpr std::size_t kMostDecisions = 1000;

/// Nobody asked, and nothing came: a validation, a checkpoint.
bool is_idle(const StageRates& rates) {
  return rates.samples == 0 && rates.mean_in_flight == 0 &&
         rates.wait_share < 0.5;
}

/// More than a few reads failed, or were late.
bool is_unwell(const StageRates& rates) {
  return rates.failed_share > kFewFail || rates.late_share > kFewLate;
}

/// No reply came where there should have been many.
bool is_silent(const StageRates& usual, const StageRates& look) {
  return look.reads_per_sample == 0 && look.latency_seconds == 0 &&
         look.samples == 0 &&
         usual.reads_per_sample * usual.samples_per_second * look.seconds >=
             kFewReads;
}

/// Enough to go by, unless it took long to get that far.
bool has_many(const StageRates& rates) {
  const double reads =
      rates.reads_per_sample * static_cast<double>(rates.samples);
  const bool is_cached = rates.hit_share > 0.5;
  return rates.samples >= kFewSamples &&
         (reads == 0 || reads >= kFewReads || is_cached);
}

/// Without a trial, observations older than that are forgotten.
bool is_window(const StageRates& rates) {
  return rates.seconds >= kLongestMeasure ||
         (rates.seconds >= kWindowSeconds && has_many(rates));
}

bool differ(double before, double now) {
  if (before <= 0 || now <= 0) return false;
  return now > before * kRateDrift || before > now * kRateDrift;
}

double settle_seconds(const StageRates& rates) {
  return std::min(2.0, std::max(kSettleSeconds, 2 * rates.latency_seconds));
}

std::string in_ms(double seconds) {
  return fmt::format("{:.1f} ms", 1e3 * seconds);
}

}  // namespace

void Tuner::begin_anew(const Observation& now) { seen_ = {now}; }

bool Tuner::rests(Knob knob, double at_seconds) const {
  return at_seconds < rests_[knob].until_seconds;
}

// Within what may be chosen, from now on.
bool Tuner::take_limits(const Observation& now, Step& step) {
  const Settings is{now.threads, now.in_flight, wanted_.lookahead,
                    now.part_bytes};
  bool is_changed = is != wanted_;
  wanted_ = is;  // Somebody else's hand, or a limit of the loader's.
  if (!seen_.empty()) {
    const Observation& last = seen_.back();
    if (last.most_threads != now.most_threads ||
        last.most_in_flight != now.most_in_flight || last.cores != now.cores) {
      rests_ = {};
      store_rate_.reset();
      read_model_.reset();
      world_ = "the limits moved";
      is_changed = true;
    }
  }
  const Settings within{std::min(is.threads, now.most_threads),
                        std::min(is.in_flight, now.most_in_flight),
                        is.lookahead, is.part_bytes};
  if (within != is) {
    decide(now, is, within, "no more is allowed", std::nullopt, step);
    wanted_ = within;
    is_changed = true;
  }
  return is_changed;
}

Tuner::Step Tuner::observe(const Observation& now) {
  Step step;
  if (!has_begun_) {
    wanted_ = {now.threads, now.in_flight, 0, now.part_bytes};
    epoch_began_seconds_ = now.at_seconds;
    has_begun_ = true;
  }
  const bool is_moved = take_limits(now, step);
  step.settings = wanted_;
  if (is_moved || seen_.empty() || now.at_seconds <= seen_.back().at_seconds ||
      now.samples < seen_.back().samples) {
    trial_.reset();
    begin_anew(now);
    return step;
  }
  if (take_epoch_end(now)) return step;
  if (trial_ && !trial_->has_taken_hold) {
    // Reads that were under way before the change are not its doing.
    trial_->has_taken_hold =
        now.at_seconds >=
        trial_->began_seconds + settle_seconds(trial_->rates_before);
    begin_anew(now);
    return step;
  }
  if (is_idle(rates_between(seen_.back(), now))) {
    begin_anew(now);
    return step;
  }
  if (take_trouble(now, step)) return step;
  seen_.push_back(now);
  while (!trial_ && seen_.size() > 2 &&
         is_window(rates_between(seen_[1], now))) {
    seen_.pop_front();
  }
  const StageRates rates = rates_between(seen_.front(), now);
  if (!is_enough(rates)) return step;
  rates_ = rates;
  if (trial_) judge(now, rates, step);
  if (!trial_) seek(now, rates, step);
  step.settings = wanted_;
  return step;
}

bool Tuner::take_trouble(const Observation& now, Step& step) {
  const StageRates look = rates_between(seen_.back(), now);
  const StageRates so_far = rates_between(seen_.front(), now);
  const bool is_silent_now = rates_ && is_silent(*rates_, look);
  const bool asks_for_more =
      trial_ && (trial_->turned[kRequestsKnob] ||
                 trial_->turned[kLookaheadKnob] || trial_->turned[kPartsKnob]);
  if (asks_for_more && (is_silent_now || is_unwell(so_far))) {
    // Not at once again: trouble comes in spells.
    for (std::size_t knob = 0; knob < kKnobs; ++knob) {
      if (!trial_->turned[knob]) continue;
      rests_[knob].until_seconds = now.at_seconds + kFirstRest;
    }
    take_back(now, *std::exchange(trial_, std::nullopt),
              is_silent_now ? std::string("the store was silent meanwhile")
                            : fmt::format("{:.1f} % of the reads failed and "
                                          "{:.1f} % were late meanwhile",
                                          100 * so_far.failed_share,
                                          100 * so_far.late_share),
              step);
    step.settings = wanted_;
    return true;
  }
  if (is_silent_now) begin_anew(now);
  return is_silent_now;
}

void Tuner::take_back(const Observation& now, const Trial& trial,
                      const std::string& why, Step& step) {
  decide(now, wanted_, trial.before, "taken back, " + why, std::nullopt, step);
  wanted_ = trial.before;
  reference_ = trial.rates_before;
  drifts_ = 0;
  begin_anew(now);
}

/// True if a long epoch has ended: its measurements say nothing of the next
/// one. Changes that rest may be tried again, once.
bool Tuner::take_epoch_end(const Observation& now) {
  if (now.epochs == seen_.back().epochs) return false;
  const double took =
      now.at_seconds - std::exchange(epoch_began_seconds_, now.at_seconds);
  if (took < kLongEpochSeconds) return false;
  for (Rest& rest : rests_) rest.until_seconds = now.at_seconds;
  store_rate_.reset();
  world_ = "an epoch has ended";
  begin_anew(now);
  return true;
}

bool Tuner::is_enough(const StageRates& rates) const {
  if (rates.samples == 0) return false;
  const double least = trial_ ? kMeasureSeconds : kFirstSeconds;
  if (rates.seconds < least) return false;
  return has_many(rates) || rates.seconds >= kLongestMeasure;
}

void Tuner::judge(const Observation& now, const StageRates& rates, Step& step) {
  const double before = trial_->rates_before.samples_per_second;
  const double gain = before > 0 ? rates.samples_per_second / before - 1 : 0;
  const std::size_t first =
      decisions_.size() - std::min(decisions_.size(), trial_->decisions);
  for (std::size_t i = first; i < decisions_.size(); ++i) {
    decisions_[i].found_gain = gain;
    step.lines.push_back(decisions_[i]);
  }
  const Trial trial = *std::exchange(trial_, std::nullopt);
  if (trial.turned[kPartsKnob]) {
    if (const auto model = read_model(trial.rates_before, rates)) {
      read_model_ = model;
    }
  }
  const bool has_enough =
      bottleneck_of(rates, now, false) == Bottleneck::kTraining;
  const bool is_kept =
      gain >= kLeastKeptGain || (has_enough && gain > -kLeastKeptGain);
  for (std::size_t knob = 0; knob < kKnobs; ++knob) {
    if (!trial.turned[knob]) continue;
    Rest& rest = rests_[knob];
    if (is_kept) {
      rest = {};
    } else {
      rest.until_seconds = now.at_seconds + rest.next_seconds;
      rest.next_seconds = std::min(2 * rest.next_seconds, kLongestRest);
    }
  }
  if (is_kept) {
    if (trial.turned[kRequestsKnob]) store_rate_.reset();
    reference_ = rates;
    drifts_ = 0;
    return;
  }
  if (trial.turned[kRequestsKnob] && !trial.turned[kThreadsKnob] &&
      !trial.turned[kPartsKnob]) {
    store_rate_ = std::max(before, rates.samples_per_second);
  }
  take_back(now, trial,
            fmt::format("it changed the speed by {:+.0f} %", 100 * gain), step);
}

// Two looks that differ, so that one odd second is not a new world.
void Tuner::watch_the_world(const StageRates& rates) {
  if (!reference_) {
    reference_ = rates;
    return;
  }
  std::string what;
  if (differ(reference_->latency_seconds, rates.latency_seconds)) {
    what = fmt::format("a read takes {} instead of {}",
                       in_ms(rates.latency_seconds),
                       in_ms(reference_->latency_seconds));
  } else if (differ(reference_->task_seconds, rates.task_seconds)) {
    what =
        fmt::format("a task takes {} instead of {}", in_ms(rates.task_seconds),
                    in_ms(reference_->task_seconds));
  } else if (differ(reference_->training_rate.value_or(0),
                    rates.training_rate.value_or(0))) {
    what = fmt::format("training takes {:.0f} samples/s instead of {:.0f}",
                       *rates.training_rate, *reference_->training_rate);
  } else if (differ(reference_->samples_per_second, rates.samples_per_second)) {
    what =
        fmt::format("{:.0f} samples/s instead of {:.0f}",
                    rates.samples_per_second, reference_->samples_per_second);
  }
  if (what.empty()) {
    drifts_ = 0;
    return;
  }
  if (++drifts_ < kDriftLooks) return;
  drifts_ = 0;
  reference_ = rates;
  rests_ = {};
  store_rate_.reset();
  read_model_.reset();
  world_ = what;
}

void Tuner::seek(const Observation& now, const StageRates& rates, Step& step) {
  watch_the_world(rates);
  if (seen_.size() < 2) {  // A trial has just been undone.
    is_settled_ = false;
    return;
  }
  std::optional<Proposal> proposal = propose(now, rates);
  if (proposal && is_unwell(rates)) {
    const std::size_t threads = proposal->settings.threads;
    proposal->settings = wanted_;
    proposal->settings.threads = threads;
    if (proposal->settings == wanted_) proposal.reset();
  }
  is_settled_ = !proposal;
  if (!proposal) return;
  std::string reason = proposal->reason;
  if (!world_.empty()) reason += "; " + std::exchange(world_, {});
  Trial trial{.before = wanted_,
              .rates_before = rates,
              .turned = {},
              .decisions = 0,
              .began_seconds = now.at_seconds};
  const Settings& to = proposal->settings;
  trial.turned = {
      to.threads != wanted_.threads, to.in_flight != wanted_.in_flight,
      to.lookahead != wanted_.lookahead, to.part_bytes != wanted_.part_bytes};
  trial.decisions = decide(now, wanted_, to, reason, proposal->gain, step);
  wanted_ = to;
  trial_ = trial;
  begin_anew(now);
}

std::size_t Tuner::decide(const Observation& now, const Settings& from,
                          const Settings& to, const std::string& reason,
                          std::optional<double> gain, Step& step) {
  std::size_t made = 0;
  const auto add = [&](Setting setting, double before, double after) {
    if (before == after) return;
    decisions_.push_back({.at_seconds = now.at_seconds,
                          .job = {},
                          .setting = setting,
                          .before = before,
                          .after = after,
                          .reason = reason,
                          .expected_gain = gain,
                          .found_gain = std::nullopt});
    step.lines.push_back(decisions_.back());
    ++made;
  };
  add(Setting::kThreads, static_cast<double>(from.threads),
      static_cast<double>(to.threads));
  add(Setting::kInFlight, static_cast<double>(from.in_flight),
      static_cast<double>(to.in_flight));
  add(Setting::kLookahead, static_cast<double>(from.lookahead),
      static_cast<double>(to.lookahead));
  add(Setting::kPartBytes, static_cast<double>(from.part_bytes),
      static_cast<double>(to.part_bytes));
  while (decisions_.size() > kMostDecisions) decisions_.pop_front();
  return made;
}

std::optional<Explanation> Tuner::explanation() const {
  if (!rates_ || seen_.empty()) return std::nullopt;
  return explain(*rates_, seen_.back(), store_rate_);
}

}  // namespace leat
