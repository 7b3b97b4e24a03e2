#include "leat/engine/loader_totals.h"

#include <algorithm>

namespace leat {
namespace {

std::uint64_t count_of(const Metrics& metrics, Metric which) {
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, metrics.value(which)));
}

}  // namespace

void add_counts(const Metrics& metrics, LoaderTotals& totals) {
  totals.batches = count_of(metrics, Metric::kPipelineBatches);
  // Counted like their time and bytes: when they are over. Read in this order,
  // so that a request sent meanwhile lowers the difference.
  const std::uint64_t sent = count_of(metrics, Metric::kStoreReads);
  totals.reads =
      sent - std::min(sent, count_of(metrics, Metric::kStoreInFlight));
  totals.failed_reads = count_of(metrics, Metric::kStoreReadErrors);
  totals.hedges = count_of(metrics, Metric::kStoreHedges);
  totals.retried = count_of(metrics, Metric::kStoreRetries);
  totals.read_time = Nanoseconds(metrics.value(Metric::kStoreReadNanoseconds));
  totals.read_wait = Nanoseconds(metrics.value(Metric::kStoreWaitNanoseconds));
  totals.ram_hits = count_of(metrics, Metric::kCacheRamHits);
  totals.disk_hits = count_of(metrics, Metric::kCacheDiskHits);
  totals.peer_hits = count_of(metrics, Metric::kCachePeerHits);
  totals.ram_bytes = count_of(metrics, Metric::kCacheRamBytes);
  totals.disk_bytes = count_of(metrics, Metric::kCacheDiskBytes);
  totals.ram_allowed_bytes = count_of(metrics, Metric::kCacheRamAllowedBytes);
  totals.disk_allowed_bytes = count_of(metrics, Metric::kCacheDiskAllowedBytes);
  totals.cache_misses = count_of(metrics, Metric::kCacheMisses);
  totals.reserved_bytes = count_of(metrics, Metric::kRuntimeReservedBytes);
}

}  // namespace leat
