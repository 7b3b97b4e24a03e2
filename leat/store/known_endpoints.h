// Facts about each endpoint that all stores of this process share.
#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "leat/base/clock.h"
#include "leat/base/mutex.h"

namespace leat {

/// Facts about one endpoint, which all its stores in a process share.
///
/// Threads: any.
class KnownEndpoint {
 public:
  /// A server with few threads rarely gets more of them.
  static constexpr Nanoseconds kCrowded = std::chrono::minutes(10);

  void note_answer(TimePoint now) {
    answer_nanoseconds_.store(now.time_since_epoch().count(),
                              std::memory_order_relaxed);
  }
  /// It came within the last minute: the endpoint is there, and what fails now
  /// is an outage.
  bool answered_recently(TimePoint now) const {
    const std::int64_t at = answer_nanoseconds_.load(std::memory_order_relaxed);
    return at != 0 && now - TimePoint(Nanoseconds(at)) <= kRecent;
  }

  /// It left new connections waiting while it answered kept ones: no connection
  /// carries a second request for a while.
  void note_crowded(TimePoint now) {
    crowded_until_nanoseconds_.store(
        (now + kCrowded).time_since_epoch().count(), std::memory_order_relaxed);
  }
  bool is_crowded(TimePoint now) const {
    return now.time_since_epoch().count() <
           crowded_until_nanoseconds_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr Nanoseconds kRecent = std::chrono::minutes(1);
  std::atomic<std::int64_t> answer_nanoseconds_ = 0;  // 0: it never has.
  std::atomic<std::int64_t> crowded_until_nanoseconds_ = 0;
};

/// The endpoints that stores were opened for. One that no store uses, and that
/// has not answered recently, is forgotten: there are no more of them than
/// stores, and those of the last minute.
///
/// Threads: any.
class KnownEndpoints {
 public:
  /// `endpoint` is a URL. Its scheme, host and port count, and its path does
  /// not: one server answers for all of its buckets.
  std::shared_ptr<KnownEndpoint> of(const std::string& endpoint, TimePoint now);

  std::size_t count() const;

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<KnownEndpoint>> known_
      LEAT_GUARDED_BY(mutex_);
};

}  // namespace leat
