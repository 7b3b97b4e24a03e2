// How many requests a server can bear that closes each connection.
#pragma once
#include <cstddef>
#include <cstdint>

#include "leat/base/clock.h"
#include "leat/store/endpoint_notes.h"

namespace leat {

/// Holds requests back from a server that keeps no connection.
///
/// Such a server accepts connections one by one and queues a few: a client that
/// opens more has packets dropped, and waits a second for each. So there are
/// few requests until a reply shows that connections are kept, which lifts all
/// bounds. Otherwise there are as many as the server answers without letting
/// them queue: the time of replies beyond the quickest tells how many wait (as
/// in TCP Vegas). A request that waited for a dropped packet halves them, and
/// their former number is not tried again for a while.
///
/// Pure: reads `notes`, and is told the time. Threads: one at a time.
class PoliteWindow {
 public:
  explicit PoliteWindow(const EndpointNotes& notes) : notes_(notes) {}

  /// To be called when a read has ended.
  void read_ended(TimePoint now);
  /// The most reads in flight; SIZE_MAX where nothing speaks against them.
  std::size_t most() const;

 private:
  void halve(TimePoint now);
  void judge(TimePoint now);

  const EndpointNotes& notes_;
  std::size_t window_ = kFirst;
  std::size_t ceiling_ = kMost;
  std::uint64_t late_ = 0;     ///< Those that were heard.
  std::uint64_t replies_ = 0;  ///< Replies of the time before this look.
  std::int64_t waited_ = 0;    ///< The same.
  TimePoint halved_;
  TimePoint raised_ceiling_;

  static constexpr std::size_t kFirst = 4;
  static constexpr std::size_t kMost = 512;
};

}  // namespace leat
