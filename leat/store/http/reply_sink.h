// A reply as it arrives, over either transport.
#pragma once
#include <cstddef>
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
  void hear_status(int status);
  void hear_header(std::string_view name, std::string_view value);
  /// The next piece of the body. False: the transfer is over, and outcome()
  /// says why.
  bool hear_body(std::string_view bytes);

  /// True if the body belongs into HttpRequest::into.
  bool goes_into_place() const;
  /// The part of the place that is not filled yet.
  std::span<std::byte> place() const;
  /// As hear_body(), for bytes that are already at the front of place().
  /// REQUIRES: at most place().size() of them.
  void placed(std::size_t bytes) { received_bytes_ += bytes; }
  /// As hear_body(): false if a body of this length is not allowed.
  bool may_hold(std::size_t body_bytes);

  /// The reply, once its body has ended properly.
  Result<HttpReply> outcome();
  /// The connection ended before the body did; `why` may be empty.
  Error cut_short(std::string_view why) const;

  int status() const { return reply_.status; }

 private:
  Error too_short() const;
  void refuse_excess();

  const HttpRequest* request_ = nullptr;
  std::size_t received_bytes_ = 0;  // Into the place.
  std::size_t header_count_ = 0;
  HttpReply reply_;
  std::optional<Error> refused_;
};

}  // namespace leat
