// How many requests a second a store bears that asks for fewer.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "leat/base/clock.h"
#include "leat/base/mutex.h"

namespace leat {

/// Spaces requests to a store that throttles. There is no bound before the
/// store asks for fewer; most stores never do.
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
/// Some stores throttle a share of all requests at any rate. If two cuts lower
/// what is served and not the share that is throttled, cutting does not help:
/// the bound is lifted, and that share is tolerated for a while.
///
/// Uses no clock; is told the time. Threads: any.
class RequestPace {
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

  /// When the next request may be sent; `now`: at once.
  TimePoint next_turn(TimePoint now);
  /// A request is sent.
  void take_turn(TimePoint now);

  /// A reply has come to a request that was sent then.
  void heard(bool is_throttled, TimePoint sent, TimePoint now);

  /// Nullopt: there is no bound.
  std::optional<double> requests_per_second() const;
  /// It has held requests back within the last second.
  bool holds(TimePoint now) const;
  /// The latest ones, the oldest first.
  std::vector<Episode> episodes() const;

 private:
  struct Look {
    std::uint64_t served = 0;
    std::uint64_t throttled = 0;
    TimePoint first_sent;
    TimePoint last_sent;
    double share() const;
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

  void count(Look& look, bool is_throttled, TimePoint sent)
      LEAT_REQUIRES(mutex_);
  bool is_over(TimePoint now) const LEAT_REQUIRES(mutex_);
  Speed speed(TimePoint now) const LEAT_REQUIRES(mutex_);
  void cut(TimePoint now) LEAT_REQUIRES(mutex_);
  void go_on(TimePoint now) LEAT_REQUIRES(mutex_);
  void lift(Episode::End why, TimePoint now) LEAT_REQUIRES(mutex_);
  void begin_episode(double sent, const Look& seen, TimePoint now)
      LEAT_REQUIRES(mutex_);
  void set_rate(double rate) LEAT_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::optional<double> rate_ LEAT_GUARDED_BY(mutex_);
  TimePoint next_turn_ LEAT_GUARDED_BY(mutex_);
  TimePoint held_at_ LEAT_GUARDED_BY(mutex_);
  bool is_held_ LEAT_GUARDED_BY(mutex_) = false;  // Within this look.
  // Requests sent earlier do not count.
  TimePoint counted_from_ LEAT_GUARDED_BY(mutex_);
  Look look_ LEAT_GUARDED_BY(mutex_);
  // The one before, if no cut lies between them.
  std::optional<Look> before_ LEAT_GUARDED_BY(mutex_);
  TimePoint throttled_at_ LEAT_GUARDED_BY(mutex_);
  double growth_ LEAT_GUARDED_BY(mutex_) = 0;
  // The first of the cuts in a row that could be measured.
  std::optional<Cut> first_cut_ LEAT_GUARDED_BY(mutex_);
  std::uint32_t cuts_ LEAT_GUARDED_BY(mutex_) = 0;
  double tolerated_ LEAT_GUARDED_BY(mutex_) = 0.03;
  // There is a bound if the last one has not ended.
  std::deque<Episode> episodes_ LEAT_GUARDED_BY(mutex_);
};

}  // namespace leat
