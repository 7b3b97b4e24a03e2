// plan_memory CATALOGUE CACHED EPOCHS: what a loader's plan, catalogue and the
// index of its cache take over so many epochs with so many records cached;
// prints one JSON object, with the most that was ever resident.
//
// It does what a loader does at each read, but for the bytes: these are not
// kept, so that the machine needs no room for them.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/check.h"
#include "leat/base/clock.h"
#include "leat/cache/segment_tier.h"
#include "leat/cache/tier_plan.h"
#include "leat/index/catalogue_file.h"
#include "leat/plan/next_use.h"

namespace {

constexpr std::uint64_t kBodyBytes = 3000;
constexpr std::uint64_t kGlobalBatch = 1024;

/// Leaves holes where bodies are, which are of zeros.
class IndexOnly final : public leat::SystemFileOps {
 public:
  ssize_t pwrite(int fd, std::span<const std::byte> bytes,
                 std::uint64_t offset) override {
    if (bytes.size() != kBodyBytes) {
      return SystemFileOps::pwrite(fd, bytes, offset);
    }
    struct stat now {};
    LEAT_CHECK(::fstat(fd, &now) == 0);
    const auto end = static_cast<off_t>(offset + bytes.size());
    if (end > now.st_size) LEAT_CHECK(::ftruncate(fd, end) == 0);
    return static_cast<ssize_t>(bytes.size());
  }
};

std::uint64_t peak_bytes() {
  rusage usage{};
  LEAT_CHECK(::getrusage(RUSAGE_SELF, &usage) == 0);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

struct Cache {
  explicit Cache(std::uint64_t records)
      : limit(records * leat::record_cost(kBodyBytes)),
        tier(*leat::SegmentTier::open(leat::open_segment_memory(ops),
                                      {.name = "ram", .limit_bytes = limit},
                                      ops, clock, nullptr)),
        plan(tiers_of(records)) {}

  std::vector<leat::TierPlan::Tier> tiers_of(std::uint64_t records) const {
    std::vector<leat::TierPlan::Tier> tiers(1);
    tiers[0].policy =
        *leat::RecordPolicy::make({.samples = records + 1, .capacity = limit});
    return tiers;
  }

  const std::uint64_t limit;
  IndexOnly ops;
  leat::SteadyClock clock;
  std::unique_ptr<leat::SegmentTier> tier;
  leat::TierPlan plan;
};

/// One epoch of one rank that reads it all; the hits.
std::uint64_t run_epoch(std::uint64_t epoch, const leat::Catalogue& catalogue,
                        leat::NextUse& next_use, Cache& cache) {
  const leat::EpochOrder order(catalogue.samples(), {}, nullptr, epoch);
  leat::Buffer body(kBodyBytes);
  std::ranges::fill(body.span(), std::byte{0});
  std::vector<leat::TierStep> steps;
  std::uint64_t hits = 0;
  for (std::uint64_t p = 0; p < catalogue.samples(); ++p) {
    const leat::SampleId id = order.at(p);
    const std::string_view name = catalogue.key(id);
    const leat::PlannedRecord record{
        .key = leat::record_key({.url = name,
                                 .etag = "\"1\"",
                                 .offset = 0,
                                 .length_bytes = kBodyBytes}),
        .next_use = next_use.at_or_after(id, epoch, p + 1),
        .length_bytes = kBodyBytes};
    const leat::AccessTime now = next_use.time_of(epoch, p);
    steps.clear();
    if (cache.tier->holds(record.key)) {
      ++hits;
      cache.plan.used(0, record, now, false, false, steps);
    } else {
      cache.plan.fetched(record, now, steps);
    }
    for (const leat::TierStep& step : steps) {
      if (step.what == leat::TierStep::What::kDrop) cache.tier->drop(step.key);
      if (step.what != leat::TierStep::What::kPut) continue;
      LEAT_CHECK(cache.tier->insert(record.key, body.span()));
    }
  }
  return hits;
}

int run(const std::string& path, std::uint64_t cached, std::uint64_t epochs) {
  const auto catalogue = leat::map_catalogue(path);
  LEAT_CHECK(catalogue.has_value());
  const std::uint64_t samples = catalogue->samples();
  auto next_use = *leat::NextUse::make({.samples = samples,
                                        .global_batch = kGlobalBatch,
                                        .ranks = {0, 1, 1},
                                        .end_epoch = epochs + 2});
  Cache cache(cached);
  std::uint64_t hits = 0;
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    hits += run_epoch(epoch, *catalogue, next_use, cache);
  }
  std::printf("%s\n", fmt::format(R"({{"samples": {}, "cached": {}, )"
                                  R"("epochs": {}, "hits": {}, )"
                                  R"("peak_rss_bytes": {}}})",
                                  samples, cache.tier->records(), epochs, hits,
                                  peak_bytes())
                          .c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  return run(argv[1], std::strtoull(argv[2], nullptr, 10),
             std::strtoull(argv[3], nullptr, 10));
}
