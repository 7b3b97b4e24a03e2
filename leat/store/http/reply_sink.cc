#include "leat/store/http/reply_sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/text.h"
#include "leat/store/http/content_range.h"
#include "leat/store/http/http_url.h"
#include "leat/store/http/status.h"

namespace leat {
namespace {

/// The most bytes that are read of the body of a reply that is not a success.
constexpr std::size_t kMostErrorBody = 64 * 1024;

/// The most bytes of all heads of a reply, and of what follows its body.
constexpr std::size_t kMostHeadBytes = 64 * 1024;
/// ": " and the end of the line.
constexpr std::size_t kBytesAroundHeader = 4;

/// "100 Continue" and "103 Early Hints", over and over, are not a reply.
constexpr int kMostInterimReplies = 16;

std::vector<std::string> values_in(std::span<const std::string> headers) {
  std::vector<std::string> values;
  for (const std::string_view header : headers) {
    const std::size_t colon = header.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view value = trimmed(header.substr(colon + 1));
    values.emplace_back(value);
    // "Bearer TOKEN": either alone.
    const std::size_t blank = value.rfind(' ');
    if (blank == std::string_view::npos) continue;
    values.emplace_back(value.substr(blank + 1));
  }
  return values;
}

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

bool ReplySink::refuse(ErrorCode code, std::string_view what) {
  refused_ = request_error(*request_, code, what);
  return false;
}

bool ReplySink::hear_status(int status) {
  reply_.status = status;
  reply_.headers.clear();
  is_head_over_ = false;
  if (status / 100 == 1 && ++interim_replies_ > kMostInterimReplies) {
    return refuse(ErrorCode::kUnavailable,
                  "interim replies without end; the server is broken");
  }
  return true;
}

bool ReplySink::hear_header(std::string_view name, std::string_view value) {
  head_bytes_ += name.size() + value.size() + kBytesAroundHeader;
  if (head_bytes_ > kMostHeadBytes) {
    return refuse(ErrorCode::kUnavailable,
                  fmt::format("the headers of the reply have more than {} "
                              "bytes; the server is broken",
                              kMostHeadBytes));
  }
  if (!is_head_over_ && !name.empty()) reply_.headers.add(name, value);
  return true;
}

void ReplySink::hear_head_end() {
  if (std::exchange(is_head_over_, true)) return;
  if (reply_.status != 200 || !request_->takes_misfits) return;
  const auto length =
      number_from<std::uint64_t>(reply_.header("content-length"));
  if (!length || *length == request_->into.size()) return;
  misfits(*length > request_->into.size() ? excess() : too_short(*length));
}

bool ReplySink::goes_into_place() const {
  return is_success(reply_.status) && !request_->into.empty() && !reply_.misfit;
}

std::span<std::byte> ReplySink::place() const {
  return request_->into.subspan(received_bytes_);
}

Error ReplySink::excess() const {
  if (request_->into.empty()) {
    return request_error(*request_, ErrorCode::kResourceExhausted,
                         fmt::format("the reply has more than {} bytes",
                                     request_->most_body_bytes));
  }
  // A 200 is a server that ignores ranges, always; a 206 is one that broke.
  const bool ignores_ranges = reply_.status == 200;
  return request_error(
      *request_,
      ignores_ranges ? ErrorCode::kInvalidArgument : ErrorCode::kUnavailable,
      fmt::format("HTTP {}: more came than the {} bytes asked for{}",
                  reply_.status, request_->into.size(),
                  ignores_ranges
                      ? "; the server ignores ranges, so put the data on "
                        "one that serves them, or the object changed"
                      : ""));
}

void ReplySink::misfits(Error why) {
  reply_.misfit = std::move(why);
  keep(as_text(request_->into.first(std::exchange(received_bytes_, 0))));
}

bool ReplySink::keep(std::string_view bytes) {
  const std::size_t room =
      std::min(kMostErrorBody, request_->most_body_bytes) - reply_.body.size();
  reply_.body.append(bytes.substr(0, room));
  kept_bytes_ += bytes.size();
  return kept_bytes_ <= kMostErrorBody;
}

bool ReplySink::may_hold(std::size_t body_bytes) {
  // That of a failure is cut off.
  if (!is_success(reply_.status) || reply_.misfit) return true;
  const std::size_t most =
      goes_into_place() ? request_->into.size() : request_->most_body_bytes;
  if (body_bytes <= most) return true;
  refused_ = excess();
  return false;
}

bool ReplySink::hear_body(std::string_view bytes) {
  if (goes_into_place()) {
    const std::span<std::byte> rest = place();
    if (bytes.size() <= rest.size()) {
      std::memcpy(rest.data(), bytes.data(), bytes.size());
      placed(bytes.size());
      return true;
    }
    if (!request_->takes_misfits || reply_.status != 200) {
      refused_ = excess();
      return false;
    }
    misfits(excess());
  }
  if (!is_success(reply_.status) || reply_.misfit) return keep(bytes);
  if (bytes.size() > request_->most_body_bytes - reply_.body.size()) {
    refused_ = excess();
    return false;
  }
  reply_.body.append(bytes);
  return true;
}

Result<HttpReply> ReplySink::outcome() {
  if (refused_) return *std::move(refused_);
  if (goes_into_place() && !place().empty()) {
    Error why = too_short(received_bytes_);
    if (!request_->takes_misfits || reply_.status != 200) return why;
    misfits(std::move(why));
  }
  // A 206 has no words that could repeat them.
  if (!goes_into_place() || reply_.status != 206) {
    reply_.sent_values = values_in(request_->headers);
  }
  return std::move(reply_);
}

Error ReplySink::too_short(std::uint64_t came_bytes) const {
  const std::size_t wanted = request_->into.size();
  // The server may say that there is no more, and then asking again is in vain.
  const auto range = parse_content_range(reply_.header("content-range"));
  const bool is_all_there_is =
      reply_.status == 200
          ? reply_.header("content-length") == std::to_string(came_bytes)
          : range && range->total == range->last + 1 &&
                range->last - range->first + 1 == came_bytes;
  if (is_all_there_is) {
    return request_error(
        *request_, ErrorCode::kInvalidArgument,
        fmt::format("HTTP {}: the range runs past the end: {} of {} bytes are "
                    "there; if the object shrank, index again",
                    reply_.status, came_bytes, wanted));
  }
  return request_error(*request_, ErrorCode::kUnavailable,
                       fmt::format("HTTP {}: the body ended after {} of {} "
                                   "bytes",
                                   reply_.status, came_bytes, wanted));
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
