// A driver's observations of its server.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "leat/base/clock.h"
#include "leat/store/known_endpoints.h"

namespace leat {

/// Written by a driver, read by the layers around it: facts that an error alone
/// does not reveal. Threads: any.
struct EndpointNotes {
  /// The service that is asked, for people; without credentials. Set before
  /// anybody reads it; empty where the store's URLs name it already.
  std::string endpoint;
  /// Other stores of this process share it, if they ask it too; set before
  /// anybody reads it.
  std::shared_ptr<KnownEndpoint> known = std::make_shared<KnownEndpoint>();
  /// The replies after which the connection was reusable, and those after which
  /// it was not.
  std::atomic<std::uint64_t> kept = 0;
  std::atomic<std::uint64_t> closed = 0;
  /// From the start of a request to the first byte of its reply, summed over
  /// all of them.
  std::atomic<std::int64_t> wait_nanoseconds = 0;
  /// The quickest of them; 0 before the first.
  std::atomic<std::int64_t> quickest_nanoseconds = 0;
  /// Requests that took so long that a packet must have been dropped.
  std::atomic<std::uint64_t> late = 0;

  /// The service asks for no request before this (`Retry-After`), in
  /// nanoseconds of the SteadyClock; 0: it never has.
  std::atomic<std::int64_t> not_before_nanoseconds = 0;

  /// Linux resends the first packet of a connection after a second.
  static constexpr Nanoseconds kLate = std::chrono::milliseconds(900);

  /// Notes that a reply of any kind has come. From now on a failure is an
  /// outage, whereas a server that has only ever failed may not exist.
  void note_answer(TimePoint now) {
    has_answered_.store(true, std::memory_order_relaxed);
    known->note_answer(now);
  }
  /// Whether the service has answered this store, or answered others of this
  /// process shortly before this store first asked. Once true, it stays true.
  bool is_there(TimePoint now) const {
    if (has_answered_.load(std::memory_order_relaxed)) return true;
    if (!known->answered_recently(now)) return false;
    has_answered_.store(true, std::memory_order_relaxed);
    return true;
  }

  void note_reply(bool can_keep, Nanoseconds until_first_byte) {
    (can_keep ? kept : closed).fetch_add(1, std::memory_order_relaxed);
    wait_nanoseconds.fetch_add(until_first_byte.count(),
                               std::memory_order_relaxed);
    std::int64_t quickest = quickest_nanoseconds;
    while ((quickest == 0 || until_first_byte.count() < quickest) &&
           !quickest_nanoseconds.compare_exchange_weak(
               quickest, until_first_byte.count())) {
    }
    if (until_first_byte >= kLate) note_late();
  }
  /// If there are several such requests, the one that reaches furthest counts.
  void note_not_before(TimePoint until) {
    const std::int64_t wanted = until.time_since_epoch().count();
    std::int64_t latest = not_before_nanoseconds;
    while (latest < wanted &&
           !not_before_nanoseconds.compare_exchange_weak(latest, wanted)) {
    }
  }
  TimePoint not_before() const {
    return TimePoint(Nanoseconds(not_before_nanoseconds.load()));
  }
  void note_late() { late.fetch_add(1, std::memory_order_relaxed); }

  void note_crowded(TimePoint now) {
    known->note_crowded(now);
    note_late();
  }
  bool is_crowded(TimePoint now) const { return known->is_crowded(now); }

 private:
  mutable std::atomic<bool> has_answered_ = false;
};

}  // namespace leat
