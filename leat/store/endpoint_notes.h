// A driver's observations of the server that it asks.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "leat/base/clock.h"

namespace leat {

/// Written by a driver, read by the layers around it: facts that an error alone
/// does not tell. Threads: any.
struct EndpointNotes {
  /// The service that is asked, for people; without credentials. Set before
  /// anybody reads it; empty where the store's URLs name it already.
  std::string endpoint;
  /// A reply of any kind has come: a failure from now on is an outage; a server
  /// that failed before may never have been there.
  std::atomic<bool> has_answered = false;
  /// Replies after which the connection can be used again, and after which it
  /// cannot.
  std::atomic<std::uint64_t> kept = 0;
  std::atomic<std::uint64_t> closed = 0;
  /// From the start of a request to its reply's first byte, summed over all of
  /// these.
  std::atomic<std::int64_t> wait_nanoseconds = 0;
  /// The quickest of them; 0 until there is one.
  std::atomic<std::int64_t> quickest_nanoseconds = 0;
  /// Requests that waited for so long that a packet must have been dropped.
  std::atomic<std::uint64_t> late = 0;

  /// Linux sends the first packet of a connection again after a second.
  static constexpr Nanoseconds kLate = std::chrono::milliseconds(900);

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
  void note_late() { late.fetch_add(1, std::memory_order_relaxed); }
};

}  // namespace leat
