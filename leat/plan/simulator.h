// Simulates the benefit of a cache: a training run over its known order,
// without bytes.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "leat/base/result.h"
#include "leat/plan/cache_policy.h"
#include "leat/plan/dealing.h"
#include "leat/plan/next_use.h"
#include "leat/plan/peer_memory.h"
#include "leat/plan/placement.h"
#include "leat/plan/wait_model.h"

namespace leat {

struct TierSpec {
  std::string policy = "belady";  ///< One of cache_policy_names().
  std::uint64_t capacity = 0;
  CapacityUnit unit = CapacityUnit::kBytes;
  AccessTime window = 0;  ///< windowed_belady.
};

/// The ranks that share a cache.
enum class CacheScope : std::uint8_t {
  kRank,   ///< Each rank has its own.
  kNode,   ///< The ranks of a node share one.
  kPeers,  ///< The same, and nodes read from each other before the
           ///< store.
};

/// The unit of a read.
enum class ReadUnit : std::uint8_t {
  kSample,
  /// A block, when an epoch meets its first sample: for a single rank, in an
  /// order with windows. Tiers hold blocks.
  kBlock,
};

struct SimulationOptions {
  std::uint64_t samples = 0;
  ReadUnit unit = ReadUnit::kSample;
  /// Bytes: a single entry for all, or one a unit; so are the next two.
  std::vector<std::uint64_t> sizes = {1};
  /// The cost of a unit in a tier; headers and whole pages make it more than
  /// the unit's bytes. If empty: `sizes`.
  std::vector<std::uint64_t> costs = {};
  /// The GETs of a unit that no cache holds; empty: one each.
  std::vector<std::uint32_t> requests = {};
  /// The number of objects in a listing; 0: as many as samples.
  std::uint64_t objects = 0;
  OrderOptions order = {};
  std::shared_ptr<const BlockMap> blocks = nullptr;
  std::uint64_t global_batch = 0;
  Tail tail = Tail::kKeep;
  Locality locality = Locality::kNone;
  std::uint32_t ranks = 1;
  std::uint32_t nodes = 1;  ///< The ranks are dealt to them evenly.
  std::uint64_t epochs = 1;
  std::vector<TierSpec> tiers = {};  ///< For each cache, fastest tier first.
  CacheScope scope = CacheScope::kNode;
  Placement placement = Placement::kAny;
  /// Absent: none. Not allowed with CacheScope::kPeers.
  std::optional<PeerMemory> peer_memory = std::nullopt;
  /// The number of ranks to simulate, from the first on (whole nodes if they
  /// share caches): independent caches behave much alike. They have their
  /// share of each link's bandwidth. 0: all.
  std::uint32_t only_ranks = 0;
  /// Absent: nothing is timed.
  std::optional<TimeOptions> times = std::nullopt;
};

/// The counts of one epoch, over all simulated ranks.
struct EpochCounts {
  std::uint64_t reads = 0;  ///< The number of GETs without any cache.
  std::vector<std::uint64_t> tier_hits = {};
  std::uint64_t peer_hits = 0;
  /// Summed over steps: the GETs of the rank with the most, less those of the
  /// rank with the least. Ranks that train in step wait for these.
  std::uint64_t uneven_gets = 0;
  /// Reads that no cache could serve. They add up to the reads.
  std::uint64_t gets = 0;
  std::uint64_t get_bytes = 0;
  /// Between nodes: bytes from servers to ranks of other nodes, and back.
  std::uint64_t peer_bytes = 0;
  double seconds = 0;
  double wait_seconds = 0;  ///< The part in which training lacks data.
  /// The same of its first step alone.
  double first_step_seconds = 0;
  double first_step_wait_seconds = 0;
};

struct SimulationReport {
  std::vector<EpochCounts> epochs;
};

/// Runs the job: each epoch's steps in turn, each step's ranks in turn. The
/// policies decide in that order, as in the loader, which asks them when it
/// sends requests. Takes O(reads * log held), and memory as CachePolicySpec
/// says. A locality that deals to holders also takes HolderDealing's memory:
/// its caches hold each rank's part of a cache's largest tier.
///
/// Errors:
///   kInvalidArgument    an invalid size, count or name; the message says which
///   kResourceExhausted  its tables would take more than kMaxTableBytes
///   kCancelled          `stop` fired
Result<SimulationReport> simulate(const SimulationOptions& options,
                                  const std::stop_token& stop = {});

/// The most memory that the policies of a simulation may take to look samples
/// up.
inline constexpr std::uint64_t kMaxTableBytes = std::uint64_t{2} << 30;

}  // namespace leat
