#include "leat/store/layers/pace_state.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace leat {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Nanoseconds kLook = milliseconds(250);
constexpr Nanoseconds kShortLook = milliseconds(50);
constexpr Nanoseconds kLongestLook = seconds(2);
constexpr std::uint64_t kFewReplies = 20;
// A look ends once this many requests were throttled: the rate is far too high.
// After cuts in a row it waits for more of them, to tell whether cutting helps.
constexpr std::uint64_t kManyThrottled = 8;
constexpr std::uint64_t kSureThrottled = 24;
constexpr double kMostlyThrottled = 0.9;
// A rate is measured over no less.
constexpr std::uint64_t kSureServed = 12;
constexpr double kSureSeconds = 0.03;

// The slow start. Its first rate lets 20 requests be under way 20 ms from a
// store, and reaches 512 of them after five round trips.
constexpr double kStartRate = 1000;
constexpr std::uint64_t kFewServed = 8;
constexpr std::uint64_t kFewThrottled = 3;
constexpr double kMuchLonger = 2;
constexpr Nanoseconds kLittleLonger = milliseconds(5);
// The store served what it had saved up, which does not tell its limit.
constexpr double kStartCut = 8;

constexpr double kTolerated = 0.03;
// If the bound holds hardly anything back, a lower one would save little.
constexpr double kToleratedIfSpare = 0.1;
constexpr double kSpare = 0.25;
constexpr double kBelowServed = 0.98;
constexpr double kMostCut = 4;
constexpr double kLeastRate = 2;
constexpr double kMostRate = 50'000;

// A cut by a few replies may be too deep: the way back is quick, and slower
// with each such cut.
constexpr double kLeastGrowth = 0.01;
constexpr double kFirstGrowth = 4;
constexpr double kSlower = 4;
constexpr double kMostGrowth = 0.5;
// Beyond it looks are short, and say nothing of each other.
constexpr double kSteadyGrowth = 0.03;
constexpr Nanoseconds kCalm = milliseconds(1500);
constexpr Nanoseconds kForgotten = seconds(60);

// Cutting helps if, at a much lower rate, a smaller share is throttled.
constexpr double kMuchLess = 0.5;
constexpr double kShareStays = 0.7;
// A store that throttles a tenth at any rate hardly ever serves all of these.
constexpr std::uint64_t kSureReplies = 50;
// The part of a look in what is usual: some hundred replies tell.
constexpr double kLookWeight = 1.0 / 16;

// Turns that nobody took in time may be taken at once, so that a timer that
// fires late costs nothing.
constexpr Nanoseconds kMostSaved = milliseconds(5);
constexpr Nanoseconds kMostAhead = seconds(10);

/// A share is seen in few replies: twice as much may be chance.
double tolerated_for(double share) {
  return std::clamp(2 * share + 0.02, kTolerated, 0.95);
}

}  // namespace

double PaceState::Replies::share() const {
  return count() == 0
             ? 0
             : static_cast<double>(throttled) / static_cast<double>(count());
}

void PaceState::start_slowly() {
  if (start_ != Start::kNot || rate_) return;
  start_ = Start::kOn;
  rate_ = kStartRate;
}

TimePoint PaceState::take_turn(TimePoint now) {
  if (!rate_) return now;
  // Turns far ahead were taken by processes that are gone, or at a low rate.
  const TimePoint turn =
      std::clamp(next_turn_, now - kMostSaved, now + kMostAhead);
  if (turn > next_turn_ && look_.count() != 0) {
    look_.unused += turn - std::max(next_turn_, look_.first_sent);
  }
  next_turn_ = turn + from_seconds(1 / *rate_);
  if (turn <= now) return now;
  held_at_ = now;
  is_held_ = true;
  return turn;
}

void PaceState::heard(bool is_throttled, TimePoint sent, TimePoint now) {
  if (is_throttled) throttled_at_ = now;
  if (sent < counted_from_) return;
  count(is_throttled, sent, now);
  if (!is_over(now)) return;
  if (look_.share() > tolerated(now)) return cut(now);
  start_ == Start::kOn ? go_on_slowly(now) : go_on(now);
}

void PaceState::count(bool is_throttled, TimePoint sent, TimePoint now) {
  Look& look = look_;
  if (look.count() == 0) {
    look.first_sent = look.last_sent = sent;
  }
  look.first_sent = std::min(look.first_sent, sent);
  look.last_sent = std::max(look.last_sent, sent);
  look.least_took = std::min(look.least_took, now - sent);
  ++(is_throttled ? look.throttled : look.served);
}

double PaceState::tolerated(TimePoint now) const {
  const bool is_spare =
      rate_ &&
      to_seconds(look_.unused) > kSpare * to_seconds(now - look_.first_sent);
  return is_spare ? std::max(tolerated_, kToleratedIfSpare) : tolerated_;
}

bool PaceState::is_over(TimePoint now) const {
  const double share = look_.share();
  const double most = tolerated(now);
  if (start_ == Start::kOn) {
    return share > most ? look_.throttled >= kFewThrottled
                        : look_.served >= kFewServed;
  }
  if (share > most) {
    // Whether cutting helps can only be told from many.
    const bool must_be_sure =
        (cuts_ >= 2 && share < kMostlyThrottled) || tolerated_ > kTolerated;
    return look_.throttled >= (must_be_sure ? kSureThrottled : kManyThrottled);
  }
  if (now - look_.first_sent >= kLongestLook) return true;
  const bool is_seeking = rate_ && growth_ > kSteadyGrowth;
  return look_.last_sent - look_.first_sent >=
             (is_seeking ? kShortLook : kLook) &&
         look_.count() >= (is_seeking ? kManyThrottled : kFewReplies);
}

/// A round trip of the slow start has brought no refusal.
void PaceState::go_on_slowly(TimePoint now) {
  const Look seen = std::exchange(look_, {});
  const auto before = std::exchange(before_, seen);
  if (!std::exchange(is_held_, false)) return;
  counted_from_ = now;
  if (before &&
      seen.least_took > kLittleLonger + kMuchLonger * before->least_took) {
    return;
  }
  rate_ = *rate_ * 2;
  if (*rate_ <= kMostRate) return;
  start_ = Start::kDone;
  rate_.reset();
  before_.reset();
}

/// The speed in this look and the one before. A rate that is kept shows in the
/// times at which requests were sent; without one they leave in bursts, as
/// replies come.
PaceState::Speed PaceState::speed(TimePoint now) const {
  const TimePoint from = before_ ? before_->first_sent : look_.first_sent;
  const double took =
      std::max(1e-3, to_seconds(rate_ ? look_.last_sent - from : now - from));
  const std::uint64_t served = look_.served + (before_ ? before_->served : 0);
  const std::uint64_t all =
      served + look_.throttled + (before_ ? before_->throttled : 0);
  const double most = rate_.value_or(std::numeric_limits<double>::max());
  return {.served = std::min(most, static_cast<double>(served) / took),
          .sent = std::min(most, static_cast<double>(all) / took),
          .is_sure = rate_ && start_ != Start::kOn && served >= kSureServed &&
                     took >= kSureSeconds};
}

void PaceState::cut(TimePoint now) {
  const Speed speed = this->speed(now);
  const double share = look_.share();
  const bool is_first = !bound();
  const Look seen = std::exchange(look_, {});
  before_.reset();
  counted_from_ = now;
  if (speed.is_sure && share < kMostlyThrottled) {
    const Cut now_cut{.rate = speed.sent, .share = share};
    // A store that had saved up something throttled too few in the first look.
    if (!worst_cut_ || (cuts_ < 2 && share > worst_cut_->share)) {
      worst_cut_ = now_cut;
    }
    if (now_cut.rate < kMuchLess * worst_cut_->rate &&
        share > kShareStays * worst_cut_->share) {
      usual_share_ = share;
      tolerated_ = tolerated_for(share);
      return lift(Episode::End::kNoHelp, now);
    }
  }
  ++cuts_;
  calm_ = {};
  const double rate = rate_.value_or(speed.sent);
  const double growth = is_first ? kFirstGrowth : growth_;
  if (is_first) begin_episode(rate, seen, now);
  set_rate(std::max(kLeastRate, cut_of(rate, speed, share)));
  growth_ =
      speed.is_sure ? kLeastGrowth : std::max(kLeastGrowth, growth / kSlower);
  next_turn_ = std::max(next_turn_, now);
  start_ = Start::kDone;
}

/// A lower rate than this one, at which that share was throttled.
double PaceState::cut_of(double rate, const Speed& speed, double share) const {
  if (start_ == Start::kOn) return rate / kStartCut;
  const double most = share < kMostlyThrottled ? 2 : kMostCut;
  return std::clamp(kBelowServed * speed.served,
                    speed.is_sure ? 0 : rate / most, kBelowServed * rate);
}

void PaceState::go_on(TimePoint now) {
  usual_share_ += kLookWeight * (look_.share() - usual_share_);
  tolerated_ = std::min(tolerated_, tolerated_for(usual_share_));
  calm_.served += look_.served;
  calm_.throttled += look_.throttled;
  before_ = std::exchange(look_, {});
  const bool has_helped =
      !worst_cut_ || calm_.share() < kMuchLess * worst_cut_->share;
  if (has_helped && calm_.count() >= kSureReplies) {
    worst_cut_.reset();
    cuts_ = 0;
  }
  const bool was_held = std::exchange(is_held_, false);
  if (!rate_) return;
  const Nanoseconds calm = now - throttled_at_;
  if (calm >= kForgotten) return lift(Episode::End::kCalm, now);
  if (!was_held) return;
  if (calm >= kCalm)
    growth_ = std::max(growth_, std::min(2 * growth_, kMostGrowth));
  set_rate(*rate_ * (1 + growth_));
  if (growth_ > kSteadyGrowth) {
    before_.reset();
    counted_from_ = now;
  }
  if (*rate_ > kMostRate) lift(Episode::End::kNoLimit, now);
}

void PaceState::begin_episode(double sent, const Look& seen, TimePoint now) {
  ++episodes_;
  episode_ = {.began = now,
              .sent = sent,
              .served = seen.served,
              .throttled = seen.throttled};
}

/// REQUIRES: an episode.
void PaceState::set_rate(double rate) {
  if (episode_.bound == 0) episode_.bound = episode_.least = rate;
  episode_.least = std::min(episode_.least, rate);
  episode_.last = rate;
  rate_ = rate;
}

void PaceState::lift(Episode::End why, TimePoint now) {
  if (rate_) {
    episode_.ended = now;
    episode_.end = why;
  }
  rate_.reset();
  worst_cut_.reset();
  cuts_ = 0;
}

bool PaceState::holds(TimePoint now) const {
  return bound() && now - held_at_ <= seconds(1);
}

}  // namespace leat
