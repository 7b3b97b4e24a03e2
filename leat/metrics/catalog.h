// Every metric that Leat has. docs/reference/metrics.md and the /metrics page
// are made from this table.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace leat {

enum class MetricKind : std::uint8_t { kCounter, kGauge };

/// Everything there is to know about one metric.
struct MetricSpec {
  std::string_view name;  ///< leat_<module>_<noun>_<unit>[_total]
  MetricKind kind;
  std::string_view help;  ///< One sentence, and the meaning of a rise.
};

/// The rows of `kCatalog`, in its order.
enum class Metric : std::uint8_t {
  kStoreReads,
  kStoreReadBytes,
  kStoreReadErrors,
  kStoreThrottled,
  kStoreRetries,
  kStoreHedges,
  kStoreHedgesWon,
  kStoreBackoffNanoseconds,
  kStoreReadNanoseconds,
  kStoreWaitNanoseconds,
  kStoreInFlight,
  kStoreLists,
  kStoreConnections,
  kStoreRequestNanodollars,
  kStoreTransferNanodollars,
  kCacheRamHits,
  kCacheDiskHits,
  kCachePeerHits,
  kCachePeerMisses,
  kCacheMisses,
  kCacheDecodedHits,
  kCacheBadRecords,
  kCacheInserts,
  kCacheDrops,
  kCacheRefusals,
  kCacheTierFailures,
  kCacheRamBytes,
  kCacheDiskBytes,
  kCacheRamAllowedBytes,
  kCacheDiskAllowedBytes,
  kRuntimeReservedBytes,
  kRuntimeExecutorTasks,
  kRuntimeProcessorMillijoules,
  kRuntimeAcceleratorMillijoules,
  kPipelineSamples,
  kPipelineBatches,
  kPipelineSubstitutes,
  kPipelineSkipped,
  kPipelineDecodeWarnings,
  kPipelineRecords,
  kPipelineRecordBytes,
  kPipelineRecordNanoseconds,
  kPipelineFreshSlots,
  kPipelineSlotBytes,
  kPipelineStalledNanoseconds,
  kPipelineStalledNanodollars,
  kCount,
};

inline constexpr std::array kCatalog = {
    MetricSpec{"leat_store_reads_total", MetricKind::kCounter,
               "Requests for bytes sent to stores, retries included."},
    MetricSpec{"leat_store_read_bytes_total", MetricKind::kCounter,
               "Bytes received from stores."},
    MetricSpec{"leat_store_read_errors_total", MetricKind::kCounter,
               "Requests for bytes that failed, retried or not."},
    MetricSpec{"leat_store_throttled_total", MetricKind::kCounter,
               "Requests that a store refused because it wants fewer; a rise "
               "means that Leat sends more slowly."},
    MetricSpec{"leat_store_retries_total", MetricKind::kCounter,
               "Requests sent again; a rise means throttling or faults."},
    MetricSpec{"leat_store_hedges_total", MetricKind::kCounter,
               "Requests sent a second time because training waited for them; "
               "a rise means that a few of them are late."},
    MetricSpec{"leat_store_hedges_won_total", MetricKind::kCounter,
               "Such second requests that were answered first."},
    MetricSpec{"leat_store_backoff_nanoseconds_total", MetricKind::kCounter,
               "Time that requests waited before being sent again."},
    MetricSpec{"leat_store_read_nanoseconds_total", MetricKind::kCounter,
               "Time of requests for bytes from sent to answered, summed: by "
               "requests it is the latency, by time how many are in flight."},
    MetricSpec{"leat_store_wait_nanoseconds_total", MetricKind::kCounter,
               "Time that requests waited for a place in flight or for their "
               "share of the bandwidth, summed; a rise means a window too "
               "small, or a share."},
    MetricSpec{"leat_store_in_flight", MetricKind::kGauge,
               "Requests for bytes sent and not yet answered."},
    MetricSpec{"leat_store_lists_total", MetricKind::kCounter,
               "List requests sent."},
    MetricSpec{"leat_store_connections_total", MetricKind::kCounter,
               "Connections opened; a steady rise means keep-alive fails."},
    MetricSpec{"leat_store_request_nanodollars_total", MetricKind::kCounter,
               "Price of the requests, for bytes and lists; left out where no "
               "provider is known: LEAT_PROVIDER."},
    MetricSpec{"leat_store_transfer_nanodollars_total", MetricKind::kCounter,
               "Price of the bytes through a NAT gateway, with LEAT_NAT=1; "
               "left out as above."},
    MetricSpec{"leat_cache_ram_hits_total", MetricKind::kCounter,
               "Reads that the RAM tier answered."},
    MetricSpec{"leat_cache_disk_hits_total", MetricKind::kCounter,
               "Reads that the disk tier answered."},
    MetricSpec{"leat_cache_peer_hits_total", MetricKind::kCounter,
               "Reads that a peer answered."},
    MetricSpec{"leat_cache_peer_misses_total", MetricKind::kCounter,
               "Reads that no peer could answer; a rise after the first epoch "
               "means a lost server, or one that is full."},
    MetricSpec{"leat_cache_misses_total", MetricKind::kCounter,
               "Reads that no tier could answer, and went on to the store."},
    MetricSpec{"leat_cache_decoded_hits_total", MetricKind::kCounter,
               "Reads that the RAM and disk tiers answered with a decoded "
               "sample."},
    MetricSpec{
        "leat_cache_bad_records_total", MetricKind::kCounter,
        "Records found torn, flipped or gone; a rise means a failing disk."},
    MetricSpec{"leat_cache_inserts_total", MetricKind::kCounter,
               "Records written to tiers."},
    MetricSpec{"leat_cache_drops_total", MetricKind::kCounter,
               "Records freed, to make room for others."},
    MetricSpec{"leat_cache_refusals_total", MetricKind::kCounter,
               "Records not written for want of a place in the queue or the "
               "tier; a rise means a slow or full disk."},
    MetricSpec{"leat_cache_tier_failures_total", MetricKind::kCounter,
               "Times that a tier failed and was left for a while."},
    MetricSpec{"leat_cache_ram_bytes", MetricKind::kGauge,
               "Bytes of the RAM tier that this process has written."},
    MetricSpec{
        "leat_cache_disk_bytes", MetricKind::kGauge,
        "Bytes of the disk tier that this process has written or taken over."},
    MetricSpec{"leat_cache_ram_allowed_bytes", MetricKind::kGauge,
               "Bytes that this process may keep in the RAM tier; a fall means "
               "that others got them."},
    MetricSpec{"leat_cache_disk_allowed_bytes", MetricKind::kGauge,
               "Bytes that this process may keep in the disk tier; a fall "
               "means that others got or took them."},
    MetricSpec{"leat_runtime_reserved_bytes", MetricKind::kGauge,
               "Bytes of the memory budget held by reservations."},
    MetricSpec{"leat_runtime_executor_tasks", MetricKind::kGauge,
               "Tasks waiting for or in a thread of the executor."},
    MetricSpec{"leat_runtime_processor_millijoules_total", MetricKind::kCounter,
               "Energy of this machine's processors since the loader was made, "
               "whoever used them; left out where RAPL cannot be read."},
    MetricSpec{"leat_runtime_accelerator_millijoules_total",
               MetricKind::kCounter,
               "Energy of the NVIDIA devices that the process sees since the "
               "loader was made, whoever used them; left out where NVML does "
               "not tell it of each."},
    MetricSpec{"leat_pipeline_samples_total", MetricKind::kCounter,
               "Samples delivered."},
    MetricSpec{"leat_pipeline_batches_total", MetricKind::kCounter,
               "Batches delivered."},
    MetricSpec{"leat_pipeline_substitutes_total", MetricKind::kCounter,
               "Bad samples whose place another one took."},
    MetricSpec{"leat_pipeline_skipped_total", MetricKind::kCounter,
               "Samples that functions skipped, whose place another one took."},
    MetricSpec{"leat_pipeline_decode_warnings_total", MetricKind::kCounter,
               "Images decoded in spite of damage."},
    MetricSpec{"leat_pipeline_records_total", MetricKind::kCounter,
               "Records made for a cache of samples that it keeps decoded."},
    MetricSpec{"leat_pipeline_record_bytes_total", MetricKind::kCounter,
               "How long those are, in bytes."},
    MetricSpec{
        "leat_pipeline_record_nanoseconds_total", MetricKind::kCounter,
        "Time of threads to decode those, summed: by records, it is what "
        "a hit saves."},
    MetricSpec{"leat_pipeline_fresh_slots_total", MetricKind::kCounter,
               "Batch slots allocated anew; a rise means batches are kept."},
    MetricSpec{"leat_pipeline_slot_bytes", MetricKind::kGauge,
               "Bytes of batch slots, in use or waiting to be used again."},
    MetricSpec{"leat_pipeline_stalled_nanoseconds_total", MetricKind::kCounter,
               "Time that training waited for batches, in which this rank's "
               "accelerator stood still."},
    MetricSpec{"leat_pipeline_stalled_nanodollars_total", MetricKind::kCounter,
               "Price of that time: this rank's part of what its node costs by "
               "LEAT_NODE_PER_HOUR; 0 where that is not set."},
};

static_assert(kCatalog.size() == static_cast<std::size_t>(Metric::kCount));

}  // namespace leat
