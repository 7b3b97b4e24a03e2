// Reports that a store has stopped answering.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "leat/base/clock.h"
#include "leat/base/error.h"
#include "leat/base/mutex.h"
#include "leat/runtime/retry_policy.h"
#include "leat/runtime/timer_queue.h"
#include "leat/store/endpoint_notes.h"

namespace leat {

/// The remedy where connections and requests vanish, and nothing refuses them.
inline constexpr std::string_view kSwallowedRemedy =
    "check host and port, the firewalls and security groups on the way, and "
    "https_proxy if this network needs a proxy";

/// Watches requests begin, fail and succeed. While some are under way and none
/// succeeds, it says so every `say_every`: which store, why, for how long, and
/// how much longer it is tried. When one succeeds again it says that too.
///
/// Threads: any. Lifetime: `timers` is destroyed first, and runs nothing of
///          it any more.
class Silence {
 public:
  using Say = std::function<void(bool is_trouble, const std::string&)>;

  struct Options {
    std::string name;  ///< The store's name, for display.
    /// Nullopt: `patience` alone bounds the attempts.
    std::optional<std::uint32_t> max_attempts{};
    Nanoseconds patience{};
    Nanoseconds say_every = std::chrono::seconds(10);
    Say say;  ///< Empty: to the log.
    /// Null: it has answered before.
    std::shared_ptr<const EndpointNotes> notes{};
  };

  Silence(Options options, TimerQueue& timers);
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

  void began();
  /// A request that began has failed, and is retried.
  void failed(const Error& error, std::uint32_t attempts_made);
  /// It has ended, successfully or finally.
  void ended(bool is_success);

 private:
  void look();
  void look_at(TimePoint when) LEAT_REQUIRES(mutex_);
  std::string text(TimePoint now) const LEAT_REQUIRES(mutex_);

  const Options options_;
  TimerQueue& timers_;
  const SteadyClock clock_;

  Mutex mutex_;
  std::uint64_t under_way_ LEAT_GUARDED_BY(mutex_) = 0;
  TimePoint silent_since_ LEAT_GUARDED_BY(mutex_);
  bool has_said_ LEAT_GUARDED_BY(mutex_) = false;
  std::uint32_t attempts_made_ LEAT_GUARDED_BY(mutex_) = 0;
  std::string last_error_ LEAT_GUARDED_BY(mutex_);
  std::optional<TimerQueue::Id> timer_ LEAT_GUARDED_BY(mutex_);
};

}  // namespace leat
