// Simulates servers that all ranks of a job share.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "leat/base/ids.h"
#include "leat/base/result.h"

namespace leat {

/// The share of a server's memory that values may take. The rest is lost to
/// partly filled pages, and to chance in the draw between servers.
inline constexpr double kUsablePeerShare = 0.9;

/// Servers on the first nodes of a job, behind each node's tiers: a sample that
/// one rank has fetched is sent to the server that its number selects, and the
/// others find it there. Nothing is evicted; if the data is larger, the
/// samples' numbers select the share that fits.
struct PeerMemory {
  /// Memory of each; values take kUsablePeerShare of it.
  std::uint64_t bytes = 0;
  std::uint32_t servers = 0;  ///< At most one on a node.
};

/// Errors: kInvalidArgument if there are no servers, or more servers than nodes
Result<void> check(const PeerMemory& memory, std::uint32_t nodes);

/// Threads: one at a time.
class PeerServers {
 public:
  /// `sizes` in bytes: a single entry for all samples, or one for each.
  /// REQUIRES: at least one server.
  PeerServers(const PeerMemory& memory, std::uint64_t samples,
              const std::vector<std::uint64_t>& sizes);

  /// The node of the server that has the sample; nullopt if none has: the
  /// caller fetches it, and from now on it is there if it has room.
  std::optional<std::uint32_t> find(SampleId sample);
  /// The node whose server holds the sample, or will; nullopt: none has room.
  std::optional<std::uint32_t> node_of(SampleId sample) const;

 private:
  const std::uint32_t servers_;
  bool has_room_for_all_ = true;
  std::uint64_t below_ = 0;  // Otherwise, draws below this have room.
  std::vector<bool> is_held_;
};

}  // namespace leat
