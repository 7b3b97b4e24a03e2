#include "leat/store/http/reply_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "leat/base/units.h"

namespace leat {
namespace {

/// The first byte may take this many times as long as is usual.
constexpr int kLateFactor = 10;

/// Patience ends at this many times the stall timeout, however often a
/// request was sent.
constexpr int kMostStalls = 4;

/// Fewer replies than this say nothing about the link.
constexpr std::size_t kCrowd = 8;

/// A reply that shares a link may be this many times slower than the others,
/// and than a reply alone.
constexpr std::uint64_t kSlowFactor = 16;

/// A request that was sent more often than this is given no more patience.
constexpr std::uint32_t kMostDoublings = 10;

}  // namespace

ReplyPatience patience_for(const HttpRequest& request,
                           const HttpClientOptions& options,
                           const FirstByteTimes& times) {
  const Nanoseconds most = options.stall_timeout;
  const Nanoseconds second = std::chrono::seconds(1);
  ReplyPatience patience{.first_byte = most, .window = most};
  if (!request.into.empty()) {
    const int doubled = 1 << std::min(request.attempt, kMostDoublings);
    if (const auto usual = times.p99()) {
      patience.usual = *usual;
      patience.first_byte = std::clamp<Nanoseconds>(
          kLateFactor * *usual,
          std::min<Nanoseconds>(options.least_first_byte_timeout, most), most);
    }
    patience.first_byte =
        std::min(doubled * patience.first_byte, kMostStalls * most);
    patience.window =
        std::min<Nanoseconds>(doubled * options.progress_window, most);
  }
  patience.least_bytes = options.least_bytes_a_second *
                         static_cast<std::uint64_t>(patience.window.count()) /
                         static_cast<std::uint64_t>(second.count());
  return patience;
}

void LinkRate::received(std::size_t bytes, TimePoint now) {
  if (now >= window_until_) {
    last_bytes_ = now - window_until_ < window_ ? bytes_ : 0;
    bytes_ = 0;
    window_until_ = now + window_;
  }
  bytes_ += bytes;
}

std::optional<std::uint64_t> LinkRate::share(Nanoseconds span,
                                             TimePoint now) const {
  if (replies_ < kCrowd) return std::nullopt;
  const bool is_over = now >= window_until_;
  const std::uint64_t bytes = now - window_until_ >= window_
                                  ? 0
                                  : std::max(bytes_, is_over ? 0 : last_bytes_);
  return bytes / replies_ * static_cast<std::uint64_t>(span / window_);
}

void ReplyWatch::open(const ReplyPatience& patience, LinkRate& link,
                      TimePoint now) {
  close();
  patience_ = patience;
  link_ = &link;
  first_byte_at_ = {};
  last_byte_at_ = {};
  all_bytes_ = 0;
  bytes_in_part_ = {};
  parts_over_ = 0;
  sent(now);
}

void ReplyWatch::close() {
  if (link_ != nullptr && has_begun()) link_->end();
  link_ = nullptr;
}

std::uint64_t ReplyWatch::least_bytes(TimePoint now) const {
  const std::uint64_t least = patience_.least_bytes;
  const auto share = link_->share(patience_.window, now);
  if (!share) return least;
  return std::clamp(*share / kSlowFactor, least / kSlowFactor, least);
}

void ReplyWatch::sent(TimePoint now) {
  if (has_begun()) return;
  sent_at_ = now;
  due_ = now + patience_.first_byte;
}

void ReplyWatch::received(std::size_t bytes, TimePoint now) {
  if (!has_begun()) {
    first_byte_at_ = now;
    due_ = now + patience_.window / kParts;
    link_->begin();
  }
  last_byte_at_ = now;
  link_->received(bytes, now);
  all_bytes_ += bytes;
  bytes_in_part_[parts_over_ % kParts] += bytes;
}

std::optional<std::string> ReplyWatch::check(TimePoint now) {
  if (now < due_) return std::nullopt;
  if (!has_begun()) return no_byte(now);
  const std::uint64_t bytes = std::accumulate(
      bytes_in_part_.begin(), bytes_in_part_.end(), std::uint64_t{0});
  if (++parts_over_ >= kParts && bytes < least_bytes(now)) {
    return fmt::format(
        "the reply was too slow: {} bytes came in the last {}, {} in all; the "
        "connection was closed; check the network",
        bytes, format_duration(patience_.window), all_bytes_);
  }
  bytes_in_part_[parts_over_ % kParts] = 0;
  const Nanoseconds part = patience_.window / kParts;
  due_ = now - due_ < part ? due_ + part : now + part;
  return std::nullopt;
}

std::string ReplyWatch::no_byte(TimePoint now) const {
  std::string said =
      fmt::format("no byte of a reply came within {} of the request",
                  format_duration(now - sent_at_));
  if (patience_.usual != Nanoseconds(0)) {
    said += fmt::format(", though 99 of 100 replies begin within {}",
                        format_duration(patience_.usual));
  }
  return said + "; the connection was closed; check the network";
}

}  // namespace leat
