// The waits of an epoch, in one line.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "leat/engine/loader_stats.h"

namespace leat {

/// The resources that a rank may use: its share of the node's.
struct RankShare {
  std::uint32_t local_ranks = 1;
  std::size_t in_flight = 1;  ///< Requests, of this rank.
  bool in_flight_was_asked = false;
  std::size_t threads = 1;  ///< That decode, of this rank.
  bool threads_were_asked = false;
  std::size_t cores = 1;  ///< That this process may run on.
  std::uint64_t memory_bytes = 0;
};

/// "waiting 14 %: storage, window capped at 64 by max_in_flight=; 128 would
/// do".
///
/// The first batch is left out: nothing was asked for before it. "Would do" is
/// the present number times elapsed / (elapsed - waited): if all are in use,
/// twice as many give twice the rate (Little's law for requests).
std::string verdict_of(const EpochStats& stats, const RankShare& share);

}  // namespace leat
