#include "leat/store/layers/polite_window.h"

#include <algorithm>
#include <chrono>

namespace leat {
namespace {

/// This many of the requests in flight may wait at the server.
constexpr double kFewWait = 3;
constexpr double kManyWait = 6;
/// Packets that were dropped together are one reason to halve.
constexpr std::chrono::seconds kOneLoss{2};
constexpr std::chrono::seconds kTryMore{30};

}  // namespace

std::size_t PoliteWindow::most() const {
  const bool are_kept = notes_.kept.load(std::memory_order_relaxed) != 0;
  return are_kept && !is_crowded_ ? SIZE_MAX : window_;
}

void PoliteWindow::read_ended(TimePoint now) {
  is_crowded_ = notes_.is_crowded(now);
  const std::uint64_t late = notes_.late.load(std::memory_order_relaxed);
  if (late != late_) {
    late_ = late;
    return halve(now);
  }
  judge(now);
}

void PoliteWindow::halve(TimePoint now) {
  if (halved_ != TimePoint() && now - halved_ < kOneLoss) return;
  halved_ = raised_ceiling_ = now;
  ceiling_ = std::max<std::size_t>(window_ - 1, 1);
  window_ = std::max<std::size_t>(window_ / 2, 1);
}

void PoliteWindow::judge(TimePoint now) {
  const std::uint64_t replies = notes_.closed.load(std::memory_order_relaxed);
  const std::uint64_t news = replies - replies_;
  if (news < window_) return;
  const std::int64_t waited =
      notes_.wait_nanoseconds.load(std::memory_order_relaxed);
  const double mean =
      static_cast<double>(waited - waited_) / static_cast<double>(news);
  replies_ = replies;
  waited_ = waited;
  const auto quickest = static_cast<double>(
      notes_.quickest_nanoseconds.load(std::memory_order_relaxed));
  const double waiting =
      mean > 0 ? static_cast<double>(window_) * (1 - quickest / mean) : 0;
  if (waiting > kManyWait) {
    window_ = std::max<std::size_t>(window_ - 1, 1);
  } else if (waiting < kFewWait && window_ < ceiling_) {
    ++window_;
  } else if (window_ == ceiling_ && ceiling_ < kMost &&
             now - raised_ceiling_ >= kTryMore) {
    ++ceiling_;
    raised_ceiling_ = now;
  }
}

}  // namespace leat
