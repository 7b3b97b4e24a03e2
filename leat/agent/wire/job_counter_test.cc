#include "leat/agent/wire/job_counter.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "leat/agent/wire/job_counters.h"

namespace leat {
namespace {

TEST(JobCountersTest, EachIsShownInAPlaceOfItsOwn) {
  std::set<std::pair<JobCounter::Part, std::string>> keys;
  std::set<std::pair<std::string_view, std::string_view>> series;
  std::set<std::string_view> metrics;
  std::string_view last;
  for (const JobCounter* counter : job_counters()) {
    EXPECT_TRUE(keys.emplace(counter->part, counter->key()).second)
        << counter->key();
    EXPECT_TRUE(series.emplace(counter->exposed_as, counter->tier).second)
        << counter->exposed_as;
    if (counter->exposed_as == last) continue;
    last = counter->exposed_as;
    EXPECT_TRUE(metrics.insert(last).second) << last << " is in two places";
    EXPECT_TRUE(counter->help.ends_with('.')) << last;
  }
}

TEST(JobTotalsTest, AreUnknownAsTheirRowsSay) {
  const JobTotals none;
  const JobTotals zero = {{&counters::kGets, 0},
                          {&counters::kTransferDollars, 0},
                          {&counters::kStalledDollars, 0}};

  EXPECT_EQ(known_total(none, counters::kGets), 0);
  EXPECT_EQ(known_total(none, counters::kTransferDollars), std::nullopt);
  EXPECT_EQ(known_total(none, counters::kStalledDollars), std::nullopt);
  EXPECT_EQ(known_total(zero, counters::kGets), 0);
  EXPECT_EQ(known_total(zero, counters::kTransferDollars), 0);
  EXPECT_EQ(known_total(zero, counters::kStalledDollars), std::nullopt);
  EXPECT_EQ(total_of(none, counters::kStalledDollars), 0);
}

TEST(JobTotalsTest, ComeFromTheMetricsThatRowsName) {
  Metrics metrics;
  metrics.add(Metric::kCacheRamHits, 7);
  metrics.set(Metric::kCacheRamBytes, -1);
  metrics.set(Metric::kCacheDiskBytes, Metrics::kUnknown);

  const JobTotals totals = totals_by(metrics);

  EXPECT_EQ(totals.at(&counters::kRamHits), 7);
  EXPECT_EQ(totals.at(&counters::kDiskHits), 0);
  EXPECT_EQ(totals.at(&counters::kRamBytes), 0) << "a reader saw it in between";
  EXPECT_FALSE(totals.contains(&counters::kDiskBytes));
  EXPECT_FALSE(totals.contains(&counters::kGets)) << "its row names no metric";
}

TEST(JobTotalsTest, SumUpEvenIfARankLies) {
  JobTotals sum = {{&counters::kGets, 2}};
  add_totals({{&counters::kGets, 3.7}, {&counters::kRequestDollars, 0.5}}, sum);
  EXPECT_EQ(sum.at(&counters::kGets), 5);
  EXPECT_EQ(sum.at(&counters::kRequestDollars), 0.5);

  add_totals({{&counters::kGets, 1e300}, {&counters::kRequestDollars, 1e300}},
             sum);
  EXPECT_EQ(sum.at(&counters::kGets), 1e15 + 5);
  EXPECT_EQ(sum.at(&counters::kRequestDollars), 1e9 + 0.5);
}

}  // namespace
}  // namespace leat
