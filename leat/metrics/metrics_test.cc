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
