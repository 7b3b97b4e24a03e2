// The options of a tier of segments.
#pragma once
#include <cstdint>
#include <string>

#include "leat/metrics/metrics.h"

namespace leat {

struct SegmentTierOptions {
  std::string name = "disk";  ///< "ram" or "disk", for messages.
  /// The limit for all writers together: see SegmentTier::allowed_bytes().
  std::uint64_t limit_bytes = 0;
  /// Shares of the limit that are reserved for writers who may yet come.
  std::uint32_t expected_writers = 1;
  /// The size of one segment; 0: a 32nd of the limit, from 4 MiB to 1 GiB.
  std::uint64_t segment_bytes = 0;
  /// A hash of the store that this job's records come from.
  std::uint64_t source = 0;
  /// The gauges that hold used_bytes() and allowed_bytes().
  Metric bytes_metric = Metric::kCacheDiskBytes;
  Metric allowed_metric = Metric::kCacheDiskAllowedBytes;
};

}  // namespace leat
