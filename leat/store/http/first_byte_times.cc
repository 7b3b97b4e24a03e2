#include "leat/store/http/first_byte_times.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace leat {
namespace {

/// The upper end of the first bucket.
constexpr double kShortestSeconds = 100e-6;

/// All counts are halved once there are this many.
constexpr std::uint32_t kMostCounted = 2000;

double seconds_of(Nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

void FirstByteTimes::note(Nanoseconds time) {
  const double octaves = std::log2(seconds_of(time) / kShortestSeconds);
  const double bucket =
      std::clamp(std::ceil(2 * octaves), 0.0, double{kBuckets - 1});
  ++counts_[static_cast<std::size_t>(bucket)];
  if (++total_ < kMostCounted) return;
  total_ = 0;
  for (std::uint32_t& count : counts_) total_ += count /= 2;
}

std::optional<Nanoseconds> FirstByteTimes::p99() const {
  if (total_ < kEnough) return std::nullopt;
  std::uint32_t slower = 0;
  std::size_t bucket = kBuckets - 1;
  for (; bucket > 0; --bucket) {
    slower += counts_[bucket];
    if (100 * slower > total_) break;
  }
  return std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(
      kShortestSeconds * std::exp2(static_cast<double>(bucket) / 2)));
}

FirstByteTimes& FirstByteBook::of(std::string_view host, std::uint16_t port) {
  for (const auto& server : servers_) {
    if (server->port == port && server->host == host) return server->times;
  }
  servers_.push_back(std::make_unique<Server>(
      Server{.host = std::string(host), .port = port, .times = {}}));
  return servers_.back()->times;
}

}  // namespace leat
