// Replaces leat/agent/wire/job_counters.cc: the same names, and one more.

#include "tests/counter/job_counters.h"

#include <array>

namespace leat {

std::span<const JobCounter* const> job_counters() {
  using namespace counters;
  static constexpr std::array kAll = {
      &kGets,           &kLists,           &kReadBytes,
      &kRequestDollars, &kTransferDollars, &kWaitSeconds,
      &kStalledDollars, &kRamHits,         &kDiskHits,
      &kPeerHits,       &kCacheMisses,     &kRamBytes,
      &kDiskBytes,      &kStoreSeconds};
  return kAll;
}

}  // namespace leat
