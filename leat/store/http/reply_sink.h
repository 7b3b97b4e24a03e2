// A reply as it arrives, over either transport.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "leat/base/result.h"
#include "leat/store/http/http_client.h"

namespace leat {

/// "GET http://host/path: `what`", without possible secrets.
Error request_error(const HttpRequest& request, ErrorCode code,
                    std::string_view what);

/// `text` without the blanks at either end.
std::string_view trimmed(std::string_view text);

/// Takes the head and the body of one reply, enforces the request's limits and
/// determines the outcome.
///
/// Threads: one.
class ReplySink {
 public:
  /// `request` must live until clear() or the next open().
  void open(const HttpRequest& request);
  void clear() { *this = ReplySink(); }

  /// A head begins. Earlier headers are dropped, since the previous head may
  /// have been "100 Continue".
  /// This and the next are false, as hear_body(), if the heads of a reply have
  /// no end.
  bool hear_status(int status);
  /// Counts a trailer, behind a head that is over, but does not keep it.
  bool hear_header(std::string_view name, std::string_view value);
  void hear_head_end();
  /// The next piece of the body. False: the transfer is over, and outcome()
  /// says how; the connection has unread bytes.
  bool hear_body(std::string_view bytes);

  /// True if the body goes into HttpRequest::into.
  bool goes_into_place() const;
  /// The part of the place that is not filled yet.
  std::span<std::byte> place() const;
  /// Like hear_body(), for bytes that are already at the front of place().
  /// REQUIRES: at most place().size() of them.
  void placed(std::size_t bytes) { received_bytes_ += bytes; }
  /// False, as from hear_body(), if a body of this length is not allowed.
  bool may_hold(std::size_t body_bytes);

  /// The reply, once its body has ended properly.
  Result<HttpReply> outcome();
  /// The connection ended before the body did; `why` may be empty.
  Error cut_short(std::string_view why) const;

  int status() const { return reply_.status; }

 private:
  Error too_short(std::uint64_t came_bytes) const;
  Error excess() const;
  bool refuse(ErrorCode code, std::string_view what);
  /// The body does not fit its place: keeps it as that of a failure.
  void misfits(Error why);
  bool keep(std::string_view bytes);

  const HttpRequest* request_ = nullptr;
  std::size_t received_bytes_ = 0;  // Into the place.
  std::size_t kept_bytes_ = 0;      // Those of a body that is cut off.
  std::size_t head_bytes_ = 0;
  int interim_replies_ = 0;
  bool is_head_over_ = false;
  HttpReply reply_;
  std::optional<Error> refused_;
};

}  // namespace leat
