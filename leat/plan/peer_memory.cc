#include "leat/plan/peer_memory.h"

#include <fmt/core.h>

#include <numeric>

#include "leat/base/check.h"
#include "leat/base/errors.h"
#include "leat/base/hash.h"

namespace leat {

Result<void> check(const PeerMemory& memory, std::uint32_t nodes) {
  if (memory.servers > 0 && memory.servers <= nodes) return {};
  return invalid(
      "{} servers of peers on {} nodes: take at least one, and at most one a "
      "node",
      memory.servers, nodes);
}

PeerServers::PeerServers(const PeerMemory& memory, std::uint64_t samples,
                         const std::vector<std::uint64_t>& sizes)
    : servers_(memory.servers), is_held_(samples, false) {
  LEAT_CHECK(memory.servers > 0);
  const double all =
      sizes.size() == 1
          ? static_cast<double>(sizes.front()) * static_cast<double>(samples)
          : std::accumulate(sizes.begin(), sizes.end(), 0.0);
  const double room = kUsablePeerShare * static_cast<double>(memory.bytes) *
                      static_cast<double>(memory.servers);
  if (room >= all) return;
  constexpr double kDraws = 18446744073709551616.0;  // 2^64
  has_room_for_all_ = false;
  below_ = static_cast<std::uint64_t>(room / all * kDraws);
}

std::optional<std::uint32_t> PeerServers::node_of(SampleId sample) const {
  const std::uint64_t draw = mix64(sample.value);
  if (!has_room_for_all_ && draw >= below_) return std::nullopt;
  return static_cast<std::uint32_t>(mix64(draw) % servers_);
}

std::optional<std::uint32_t> PeerServers::find(SampleId sample) {
  const auto node = node_of(sample);
  if (!node || is_held_[sample.value]) return node;
  is_held_[sample.value] = true;
  return std::nullopt;
}

}  // namespace leat
