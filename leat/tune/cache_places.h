// Decides in which tier of the node's caches a job's share lies.
#pragma once
#include <span>

#include "leat/tune/allocation.h"

namespace leat {

/// The most that one job's tiers may hold, for all its ranks on the
/// node.
struct CacheRoom {
  double ram_bytes = kUnbounded;
  double disk_bytes = kUnbounded;
};

/// Sets `disk_bytes` of each grant: bytes that only one tier of their job can
/// hold go there first, the rest into RAM in equal proportion, and then to
/// disk. The sum stays within what the node has, and each job within its room;
/// `cache_bytes` that do not fit are reduced.
///
/// REQUIRES: one room for each grant.
void place_cache(const NodeResources& node, std::span<const CacheRoom> rooms,
                 std::span<Grant> grants);

}  // namespace leat
