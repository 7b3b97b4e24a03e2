#include "leat/metrics/metrics.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace leat {
namespace {

TEST(MetricsTest, CountsAndPrintsEveryRowOfTheCatalogue) {
  Metrics metrics;
  metrics.add(Metric::kStoreReads, 2);
  metrics.add(Metric::kStoreReads, 3);

  EXPECT_EQ(metrics.value(Metric::kStoreReads), 5);
  const std::string text = metrics.exposition();
  for (const MetricSpec& spec : kCatalog) {
    EXPECT_NE(text.find(std::string("\n") + std::string(spec.name) + " "),
              std::string::npos)
        << spec.name;
  }
  EXPECT_NE(text.find("\nleat_store_reads_total 5\n"), std::string::npos);
}

TEST(MetricsTest, WhatIsNotKnownIsLeftOut) {
  Metrics metrics;
  metrics.set(Metric::kRuntimeProcessorMillijoules, Metrics::kUnknown);
  metrics.set(Metric::kRuntimeAcceleratorMillijoules, 7);

  const std::string text = metrics.exposition();

  EXPECT_EQ(text.find("processor_millijoules"), std::string::npos);
  EXPECT_NE(text.find("\nleat_runtime_accelerator_millijoules_total 7\n"),
            std::string::npos);
}

TEST(MetricsTest, TakesWhatAnotherHasCountedOnce) {
  Metrics opening;
  Metrics metrics;
  opening.add(Metric::kStoreLists, 3);
  opening.add(Metric::kStoreInFlight, 1);
  metrics.add(Metric::kStoreLists, 2);

  metrics.take_counters(opening);
  metrics.take_counters(opening);

  EXPECT_EQ(metrics.value(Metric::kStoreLists), 5);
  EXPECT_EQ(metrics.value(Metric::kStoreInFlight), 0) << "a gauge is not";
  EXPECT_EQ(opening.value(Metric::kStoreInFlight), 1);
}

TEST(MetricsTest, NamesFollowThePattern) {
  std::set<std::string_view> seen;
  for (const MetricSpec& spec : kCatalog) {
    EXPECT_TRUE(spec.name.starts_with("leat_")) << spec.name;
    EXPECT_EQ(spec.name.ends_with("_total"), spec.kind == MetricKind::kCounter)
        << spec.name;
    EXPECT_TRUE(seen.insert(spec.name).second) << spec.name;
  }
}

}  // namespace
}  // namespace leat
