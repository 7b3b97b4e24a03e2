// When each endpoint last answered this process.
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

/// The last answer of an endpoint, which all its stores in a process share.
///
/// Threads: any.
class LastAnswer {
 public:
  void note(TimePoint now) {
    at_nanoseconds_.store(now.time_since_epoch().count(),
                          std::memory_order_relaxed);
  }
  /// It came within the last minute: the endpoint is there, and what fails now
  /// is an outage.
  bool is_recent(TimePoint now) const {
    const std::int64_t at = at_nanoseconds_.load(std::memory_order_relaxed);
    return at != 0 && now - TimePoint(Nanoseconds(at)) <= kRecent;
  }

 private:
  static constexpr Nanoseconds kRecent = std::chrono::minutes(1);
  std::atomic<std::int64_t> at_nanoseconds_ = 0;  // 0: it never has.
};

/// The endpoints that stores were opened for. One that no store uses, and that
/// has not answered recently, is forgotten: there are no more of them than
/// stores, and those of the last minute.
///
/// Threads: any.
class RecentAnswers {
 public:
  /// `endpoint` is a URL. Its scheme, host and port count, and its path does
  /// not: one server answers for all of its buckets.
  std::shared_ptr<LastAnswer> of(const std::string& endpoint, TimePoint now);

  std::size_t count() const;

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<LastAnswer>> known_
      LEAT_GUARDED_BY(mutex_);
};

}  // namespace leat
