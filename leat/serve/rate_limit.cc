#include "leat/serve/rate_limit.h"

#include <algorithm>

#include "leat/base/check.h"

namespace leat {
namespace {

constexpr std::uint64_t kLeastPiece = 1 << 10;
constexpr std::uint64_t kMostPiece = 256 << 10;

}  // namespace

RateLimit::RateLimit(std::uint64_t bytes_per_second)
    : ns_per_byte_(1e9 / double(bytes_per_second)),
      piece_bytes_(
          std::clamp(bytes_per_second / 500, kLeastPiece, kMostPiece)) {
  LEAT_CHECK(bytes_per_second > 0);
}

TimePoint RateLimit::reserve(std::size_t bytes, TimePoint ready) {
  const Nanoseconds takes(
      static_cast<Nanoseconds::rep>(double(bytes) * ns_per_byte_));
  MutexLock lock(mutex_);
  const TimePoint begins = std::max(free_at_, ready);
  free_at_ = begins + takes;
  return begins;
}

}  // namespace leat
