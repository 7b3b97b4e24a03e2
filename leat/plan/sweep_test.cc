#include "leat/plan/sweep.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace leat {
namespace {

SweepOptions job_of(std::uint64_t samples) {
  return {.samples = samples,
          .total_bytes = samples * 100,
          .global_batch = 400,
          .ranks = 4,
          .nodes = 2,
          .epochs = 12,
          .ram_bytes = samples * 100 / 8,
          .disk_bytes = samples * 100 / 8,
          .times = {.compute_seconds = 0.1, .get_seconds = 0.05}};
}

const SweepRow& row(const std::vector<SweepRow>& rows, const char* name) {
  return *std::find_if(rows.begin(), rows.end(),
                       [&](const SweepRow& r) { return r.name == name; });
}

std::uint64_t gets_of(const SweepRow& row) {
  std::uint64_t gets = 0;
  for (const EpochCounts& epoch : row.report.epochs) gets += epoch.gets;
  return gets;
}

TEST(SweepTest, ComparesPoliciesSizesAndPeers) {
  const auto rows = sweep(job_of(4000));
  ASSERT_TRUE(rows.has_value()) << rows.error().message();

  EXPECT_EQ(gets_of(row(*rows, "no cache")), 12u * 4000u);
  EXPECT_LT(gets_of(row(*rows, "belady")), gets_of(row(*rows, "never_evict")));
  EXPECT_LT(gets_of(row(*rows, "never_evict")), gets_of(row(*rows, "lru")));
  EXPECT_LT(gets_of(row(*rows, "belady x2")), gets_of(row(*rows, "belady")));
  EXPECT_GT(gets_of(row(*rows, "belady x0.5")), gets_of(row(*rows, "belady")));
  EXPECT_LT(gets_of(row(*rows, "never_evict + peers")),
            gets_of(row(*rows, "never_evict")));
}

// What stands in a smaller dataset says what the full one would, within a
// point.
TEST(SweepTest, ALargeDatasetIsToldFromASmallOne) {
  const std::uint64_t samples = 100000;  // Simulated as 50,000.
  SweepOptions options = job_of(samples);
  options.epochs = 3;
  const auto rows = sweep(options);
  ASSERT_TRUE(rows.has_value());
  const SweepRow& told = row(*rows, "belady");

  const auto full = simulate(told.options);

  ASSERT_TRUE(full.has_value());
  for (std::size_t e = 0; e < 3; ++e) {
    EXPECT_NEAR(static_cast<double>(told.report.epochs[e].gets),
                static_cast<double>(full->epochs[e].gets), .01 * samples);
    EXPECT_NEAR(told.report.epochs[e].seconds, full->epochs[e].seconds,
                .02 * full->epochs[e].seconds);
  }
}

TEST(SweepTest, WithoutRoomThereIsNoCacheToCompare) {
  SweepOptions options = job_of(1000);
  options.ram_bytes = 0;
  options.disk_bytes = 0;

  EXPECT_EQ(sweep(options)->size(), 1u);
}

TEST(SweepTest, RefusesNothing) {
  SweepOptions options = job_of(1000);
  options.samples = 0;

  EXPECT_FALSE(sweep(options).has_value());
}

}  // namespace
}  // namespace leat
