// The part of its node that one rank has.
#pragma once
#include <cstddef>
#include <cstdint>

namespace leat {

/// Bounds of a rank, and which of them its user asked for.
struct RankLimits {
  std::uint32_t local_ranks = 1;  ///< That the node is divided among.
  std::size_t in_flight = 1;      ///< Requests, of this rank.
  bool in_flight_was_asked = false;
  std::size_t threads = 1;  ///< That decode, of this rank.
  bool threads_were_asked = false;
  std::size_t cores = 1;  ///< That this process may run on.
  std::uint64_t memory_bytes = 0;
};

}  // namespace leat
