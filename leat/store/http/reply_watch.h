// Deadlines that follow from how a reply gets on.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "leat/base/clock.h"
#include "leat/store/http/first_byte_times.h"
#include "leat/store/http/http_client.h"

namespace leat {

/// How slow a reply may be.
struct ReplyPatience {
  /// From the last byte of the request to the first of the reply.
  Nanoseconds first_byte{0};
  /// The first byte of 99 of 100 replies comes within this; 0: not known.
  Nanoseconds usual{0};
  /// After the first byte, at least `least_bytes` come in each such span.
  Nanoseconds window{0};
  std::uint64_t least_bytes = 0;
};

/// The patience with a request.
///
/// A read is judged by the server's own times, and twice as patiently each time
/// it is sent again, so that a slow server still serves. All else, such as a
/// listing, may take as long as `stall_timeout` says.
ReplyPatience patience_for(const HttpRequest& request,
                           const HttpClientOptions& options,
                           const FirstByteTimes& times);

/// The rate at which all replies of a thread come, together.
///
/// Many replies share a slow link: none of them is to blame for its rate.
class LinkRate {
 public:
  explicit LinkRate(Nanoseconds window) : window_(window) {}

  void begin() { ++replies_; }
  void end() { --replies_; }
  void received(std::size_t bytes, TimePoint now);
  /// The bytes that each reply brings in `span`; nullopt if there are few.
  std::optional<std::uint64_t> share(Nanoseconds span, TimePoint now) const;

 private:
  const Nanoseconds window_;
  TimePoint window_until_;
  std::uint64_t bytes_ = 0;       // In this window,
  std::uint64_t last_bytes_ = 0;  // and in the one before.
  std::size_t replies_ = 0;
};

/// Watches one reply. Does no I/O and asks no clock.
///
/// A reply must bring `least_bytes`, or a sixteenth of what the others bring,
/// if that is less and there are others; but never less than a sixteenth of
/// `least_bytes`. The span over which the rate is judged moves in quarters, so
/// that a reply that dries up is noticed at most a quarter late. Time in which
/// nobody called is not held against the server.
class ReplyWatch {
 public:
  ReplyWatch() = default;
  ~ReplyWatch() { close(); }
  ReplyWatch(const ReplyWatch&) = delete;
  ReplyWatch& operator=(const ReplyWatch&) = delete;

  /// `link` must live until close(), which comes before the next open().
  void open(const ReplyPatience& patience, LinkRate& link, TimePoint now);
  void close();
  /// Some of the request was sent.
  void sent(TimePoint now);
  void received(std::size_t bytes, TimePoint now);

  /// When check() is due.
  TimePoint deadline() const { return due_; }
  /// Says what was seen, if the reply is too slow.
  std::optional<std::string> check(TimePoint now);

  bool has_begun() const { return first_byte_at_ != TimePoint(); }
  /// From the last byte of the request. REQUIRES: has_begun().
  Nanoseconds until_first_byte() const { return first_byte_at_ - sent_at_; }
  TimePoint first_byte_at() const { return first_byte_at_; }
  TimePoint last_byte_at() const { return last_byte_at_; }

 private:
  static constexpr std::size_t kParts = 4;

  std::string no_byte(TimePoint now) const;
  std::uint64_t least_bytes(TimePoint now) const;

  ReplyPatience patience_;
  LinkRate* link_ = nullptr;  // Null: closed.
  TimePoint due_;
  TimePoint sent_at_;
  TimePoint first_byte_at_;
  TimePoint last_byte_at_;
  std::uint64_t all_bytes_ = 0;
  std::array<std::uint64_t, kParts> bytes_in_part_{};
  std::size_t parts_over_ = 0;
};

}  // namespace leat
