#include "leat/engine/loader_rates.h"

#include <algorithm>

namespace leat {
namespace {

std::uint64_t count_of(const Metrics& metrics, Metric which) {
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, metrics.value(which)));
}

}  // namespace

void add_counts(const Metrics& metrics, LoaderRates& rates) {
  rates.batches = count_of(metrics, Metric::kPipelineBatches);
  // Counted like their time and bytes: when they are over. Read in this order,
  // so that a request sent meanwhile lowers the difference.
  const std::uint64_t sent = count_of(metrics, Metric::kStoreReads);
  rates.reads =
      sent - std::min(sent, count_of(metrics, Metric::kStoreInFlight));
  rates.retried = count_of(metrics, Metric::kStoreRetries);
  rates.read_time = Nanoseconds(metrics.value(Metric::kStoreReadNanoseconds));
  rates.read_wait = Nanoseconds(metrics.value(Metric::kStoreWaitNanoseconds));
  rates.ram_hits = count_of(metrics, Metric::kCacheRamHits);
  rates.disk_hits = count_of(metrics, Metric::kCacheDiskHits);
  rates.peer_hits = count_of(metrics, Metric::kCachePeerHits);
  rates.ram_bytes = count_of(metrics, Metric::kCacheRamBytes);
  rates.disk_bytes = count_of(metrics, Metric::kCacheDiskBytes);
  rates.ram_allowed_bytes = count_of(metrics, Metric::kCacheRamAllowedBytes);
  rates.disk_allowed_bytes = count_of(metrics, Metric::kCacheDiskAllowedBytes);
  rates.cache_misses = count_of(metrics, Metric::kCacheMisses);
  rates.reserved_bytes = count_of(metrics, Metric::kRuntimeReservedBytes);
}

}  // namespace leat
