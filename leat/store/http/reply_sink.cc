#include "leat/store/http/reply_sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "leat/store/http/content_range.h"
#include "leat/store/http/http_url.h"
#include "leat/store/http/status.h"

namespace leat {
namespace {

/// The most bytes that are kept of the body of a reply that is not a success.
constexpr std::size_t kMostErrorBody = 64 * 1024;

constexpr std::size_t kMostHeaders = 256;

}  // namespace

Error request_error(const HttpRequest& request, ErrorCode code,
                    std::string_view what) {
  return Error(code, fmt::format("{} {}: {}", request.method,
                                 url_for_people(request.url), what));
}

std::string_view trimmed(std::string_view text) {
  const auto is_blank = [](char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
  };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

void ReplySink::open(const HttpRequest& request) {
  clear();
  request_ = &request;
}

void ReplySink::hear_status(int status) {
  reply_.status = status;
  reply_.headers.clear();
  header_count_ = 0;
}

void ReplySink::hear_header(std::string_view name, std::string_view value) {
  if (++header_count_ > kMostHeaders) return;
  reply_.headers.add(name, value);
}

bool ReplySink::goes_into_place() const {
  return is_success(reply_.status) && !request_->into.empty();
}

std::span<std::byte> ReplySink::place() const {
  return request_->into.subspan(received_bytes_);
}

void ReplySink::refuse_excess() {
  if (!goes_into_place()) {
    refused_ = request_error(*request_, ErrorCode::kResourceExhausted,
                             fmt::format("the reply has more than {} bytes",
                                         request_->most_body_bytes));
    return;
  }
  // A 200 is a server that ignores ranges, always; a 206 is one that broke.
  const bool ignores_ranges = reply_.status == 200;
  refused_ = request_error(
      *request_,
      ignores_ranges ? ErrorCode::kInvalidArgument : ErrorCode::kUnavailable,
      fmt::format("HTTP {}: more came than the {} bytes asked for{}",
                  reply_.status, request_->into.size(),
                  ignores_ranges
                      ? "; the server ignores ranges, so put the data on "
                        "one that serves them, or the object changed"
                      : ""));
}

bool ReplySink::may_hold(std::size_t body_bytes) {
  if (!is_success(reply_.status)) return true;  // It is cut off.
  const std::size_t most =
      goes_into_place() ? request_->into.size() : request_->most_body_bytes;
  if (body_bytes <= most) return true;
  refuse_excess();
  return false;
}

bool ReplySink::hear_body(std::string_view bytes) {
  if (goes_into_place()) {
    const std::span<std::byte> rest = place();
    if (bytes.size() > rest.size()) {
      refuse_excess();
      return false;
    }
    std::memcpy(rest.data(), bytes.data(), bytes.size());
    placed(bytes.size());
    return true;
  }
  if (!is_success(reply_.status)) {
    const std::size_t room =
        std::min(kMostErrorBody, request_->most_body_bytes) -
        reply_.body.size();
    reply_.body.append(bytes.substr(0, room));
    return true;
  }
  if (bytes.size() > request_->most_body_bytes - reply_.body.size()) {
    refuse_excess();
    return false;
  }
  reply_.body.append(bytes);
  return true;
}

Result<HttpReply> ReplySink::outcome() {
  if (refused_) return *std::move(refused_);
  if (goes_into_place() && !place().empty()) return too_short();
  return std::move(reply_);
}

Error ReplySink::too_short() const {
  const std::size_t wanted = request_->into.size();
  // The server may say that there is no more, and then asking again is in vain.
  const auto range = parse_content_range(reply_.header("content-range"));
  const bool is_all_there_is =
      reply_.status == 200
          ? reply_.header("content-length") == std::to_string(received_bytes_)
          : range && range->total == range->last + 1 &&
                range->last - range->first + 1 == received_bytes_;
  if (is_all_there_is) {
    return request_error(
        *request_, ErrorCode::kInvalidArgument,
        fmt::format("HTTP {}: the range runs past the end: {} of {} bytes are "
                    "there; if the object shrank, index again",
                    reply_.status, received_bytes_, wanted));
  }
  return request_error(*request_, ErrorCode::kUnavailable,
                       fmt::format("HTTP {}: the body ended after {} of {} "
                                   "bytes",
                                   reply_.status, received_bytes_, wanted));
}

Error ReplySink::cut_short(std::string_view why) const {
  const std::size_t received =
      goes_into_place() ? received_bytes_ : reply_.body.size();
  return request_error(
      *request_, ErrorCode::kUnavailable,
      fmt::format("the body ended after {} bytes{}{}{}; the connection broke",
                  received, why.empty() ? "" : " (", why,
                  why.empty() ? "" : ")"));
}

}  // namespace leat
