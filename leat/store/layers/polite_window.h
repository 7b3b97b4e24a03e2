// How many requests a server can bear that has a connection for each.
#pragma once
#include <cstddef>
#include <cstdint>

#include "leat/base/clock.h"
#include "leat/store/endpoint_notes.h"

namespace leat {

/// Holds requests back from a server that keeps no connections, or that has
/// few threads, so that connections must not be kept (EndpointNotes).
///
/// Such a server accepts connections one by one and queues a few: a client that
/// opens more has packets dropped, and waits a second for each. So there are
/// few requests until a reply shows that connections are kept, which lifts all
/// bounds until the server proves crowded. Otherwise there are as many as the
/// server answers without queueing them: the time of replies beyond the
/// quickest shows how many wait (as in TCP Vegas). A request that waited for a
/// dropped packet halves them, and the earlier number is not tried again for a
/// while.
///
/// Uses no clock: reads `notes`, and is told the time. Threads: one at a time.
class PoliteWindow {
 public:
  explicit PoliteWindow(const EndpointNotes& notes) : notes_(notes) {}

  /// Call when a read has ended.
  void read_ended(TimePoint now);
  /// The most reads in flight; SIZE_MAX if there is no bound.
  std::size_t most() const;

 private:
  void halve(TimePoint now);
  void judge(TimePoint now);

  const EndpointNotes& notes_;
  bool is_crowded_ = false;
  std::size_t window_ = kFirst;
  std::size_t ceiling_ = kMost;
  std::uint64_t late_ = 0;     ///< Those that were counted.
  std::uint64_t replies_ = 0;  ///< Replies before this look.
  std::int64_t waited_ = 0;    ///< The same for their waits.
  TimePoint halved_;
  TimePoint raised_ceiling_;

  static constexpr std::size_t kFirst = 4;
  static constexpr std::size_t kMost = 512;
};

}  // namespace leat
