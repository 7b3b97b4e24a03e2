// The part of its node's resources that one rank has.
#pragma once
#include <cstddef>
#include <cstdint>

namespace leat {

/// The bounds of a rank, and which of them the user set.
struct RankLimits {
  std::uint32_t local_ranks = 1;  ///< The ranks that share the node.
  std::size_t in_flight = 1;      ///< Requests of this rank.
  bool in_flight_was_asked = false;
  std::size_t threads = 1;  ///< Decoding threads of this rank.
  bool threads_were_asked = false;
  std::size_t cores = 1;  ///< Those this process may run on.
  std::uint64_t memory_bytes = 0;
};

}  // namespace leat
