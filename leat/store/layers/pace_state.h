// How many requests a second a store bears that asks for fewer: the rule.
#pragma once
#include <cstdint>
#include <optional>

#include "leat/base/clock.h"

namespace leat {

/// Spaces requests to a store that throttles. There is no bound before the
/// store asks for fewer; most stores never do.
///
/// Nobody knows the limit of a store at first, and a full window at once costs
/// a refusal for each request above it. A slow start therefore doubles the rate
/// with each round trip, as TCP does, until some are throttled or no store
/// bears more. A round trip that took far longer than the one before does not
/// count. The rate stays where requests are too few to be held back: it is not
/// known what the store bears.
///
/// A look is a quarter of a second of replies, or less where many are
/// throttled. A look in which the store throttled more than is tolerated (3 %)
/// sets the rate just below what the store served in it, and at most halves it.
/// A look without makes it 1 % faster, and more once none was throttled for
/// seconds. So the rate stays within a few percent of what is served, as TCP
/// BBR finds a bottleneck by what it delivers (Cardwell et al., ACM Queue 14/5,
/// 2016). Replies to requests sent before the last cut do not count: a round
/// trip cuts once.
///
/// If a quarter of the turns are left unused, 10 % is tolerated: a lower rate
/// would hold training back and save little.
///
/// Some stores throttle a share of all requests at any rate. If two cuts lower
/// what is served and not the share that is throttled, cutting does not help:
/// the bound is lifted, and that share is tolerated until fewer are throttled.
/// Chance spares a few replies in a row, which therefore tell neither.
///
/// Uses no clock; is told the time. Only numbers, so that processes can share
/// it: see pace_memory.h. Threads: one at a time.
class PaceState {
 public:
  /// A time in which there was a bound. Rates are in requests a second.
  struct Episode {
    enum class End : std::uint8_t {
      kNotYet,
      kCalm,     ///< None was throttled for a minute.
      kNoLimit,  ///< It has grown beyond what any store bears.
      kNoHelp,   ///< Fewer requests were throttled as often.
    };
    TimePoint began;
    double sent = 0;   ///< The rate before; unbounded.
    double bound = 0;  ///< The first one.
    /// The replies that brought it.
    std::uint64_t served = 0;
    std::uint64_t throttled = 0;
    double least = 0;   ///< The lowest bound, so far.
    double last = 0;    ///< The bound at the end, or now.
    TimePoint ended{};  ///< If it has.
    End end = End::kNotYet;
  };

  /// Begins a slow start, unless something is known already.
  void start_slowly();

  /// Gives away the next turn to send a request: `now`, or later.
  TimePoint take_turn(TimePoint now);
  /// A reply has come to a request that was sent then.
  void heard(bool is_throttled, TimePoint sent, TimePoint now);

  /// The turns a second; nullopt: they may be taken at once.
  std::optional<double> rate() const { return rate_; }
  /// The same, if the store throttles; nullopt: there is no bound.
  std::optional<double> bound() const {
    return start_ == Start::kOn ? std::nullopt : rate_;
  }
  /// It has held requests back within the last second.
  bool holds(TimePoint now) const;
  /// The episodes so far, and the latest of them.
  std::uint64_t episodes() const { return episodes_; }
  const Episode& latest() const { return episode_; }

 private:
  struct Replies {
    std::uint64_t served = 0;
    std::uint64_t throttled = 0;
    std::uint64_t count() const { return served + throttled; }
    double share() const;  ///< The throttled part.
  };
  struct Look : Replies {
    TimePoint first_sent;
    TimePoint last_sent;
    Nanoseconds least_took = Nanoseconds::max();
    Nanoseconds unused{};  ///< Turns were there that nobody took.
  };
  struct Speed {  ///< In requests a second.
    double served = 0;
    double sent = 0;
    bool is_sure = false;
  };
  struct Cut {
    double rate = 0;
    double share = 0;
  };

  enum class Start : std::uint8_t { kNot, kOn, kDone };

  void count(bool is_throttled, TimePoint sent, TimePoint now);
  void go_on_slowly(TimePoint now);
  bool is_over(TimePoint now) const;
  double tolerated(TimePoint now) const;
  Speed speed(TimePoint now) const;
  void cut(TimePoint now);
  double cut_of(double rate, const Speed& speed, double share) const;
  void go_on(TimePoint now);
  void lift(Episode::End why, TimePoint now);
  void begin_episode(double sent, const Look& seen, TimePoint now);
  void set_rate(double rate);

  std::optional<double> rate_;
  Start start_ = Start::kNot;
  TimePoint next_turn_;
  TimePoint held_at_;
  bool is_held_ = false;    // Within this look.
  TimePoint counted_from_;  // Requests sent earlier do not count.
  Look look_;
  std::optional<Look> before_;  // The last, if no cut lies between them.
  TimePoint throttled_at_;
  double growth_ = 0;
  std::optional<Cut> worst_cut_;  // In a row, if it could be measured.
  std::uint32_t cuts_ = 0;        // In a row.
  Replies calm_;                  // In the looks since.
  double usual_share_ = 0;        // Since the bound was lifted.
  double tolerated_ = 0.03;
  std::uint64_t episodes_ = 0;
  Episode episode_;  // There is a bound if it has not ended.
};

}  // namespace leat
