// On which node's server each sample lies, where the plan says it and not the
// samples' keys.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

#include "leat/engine/loader_machine.h"
#include "leat/plan/placement.h"

namespace leat {

Result<std::shared_ptr<const std::vector<std::uint16_t>>>
Loader::Machine::place_peers(std::uint32_t local_ranks) const {
  const auto refuse = [](std::string_view why) {
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("peer_placement=\"frequency\" {}; or leave it out", why));
  };
  const std::size_t servers = options.cache->peers.size();
  if (servers == 0)
    return refuse("is of peers, and there are none; give peers=");
  if (!options.epochs) {
    return refuse("counts the reads of all epochs; give epochs=");
  }
  if (dataset.catalogue == nullptr) {
    return refuse("needs an index of the shards; make one with `leat index`");
  }
  if (options.locality != Locality::kNone) {
    return refuse(
        "places samples where ranks read their runs of each step, "
        "and locality= deals them otherwise; leave that out");
  }
  if (rank.world_size % local_ranks != 0 ||
      servers != rank.world_size / local_ranks ||
      servers > std::numeric_limits<std::uint16_t>::max()) {
    return refuse(fmt::format(
        "has a server on each node, in their order, and here are {} for {} "
        "ranks, {} on this node; name one a node",
        servers, rank.world_size, local_ranks));
  }
  constexpr std::uint64_t kMostReads = 2'000'000'000;  // Minutes to count.
  NextUseOptions job = next_use_options(0, 0);
  if (*options.epochs > kMostReads / std::max<std::uint64_t>(1, job.samples)) {
    return refuse(
        fmt::format("counts the reads of all epochs, of {} samples "
                    "in {} epochs: past {}",
                    job.samples, *options.epochs, kMostReads));
  }
  job.end_epoch = *options.epochs;
  LEAT_TRY(auto nodes,
           nodes_by_frequency(job, static_cast<std::uint16_t>(servers)));
  return std::make_shared<const std::vector<std::uint16_t>>(std::move(nodes));
}

}  // namespace leat
