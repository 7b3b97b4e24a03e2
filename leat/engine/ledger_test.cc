#include "leat/engine/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace leat {
namespace {

using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string, std::less<>>;

Result<Pricing> priced(Variables variables,
                       const std::optional<std::string>& provider = "") {
  return read_pricing(fake_env(std::move(variables)), provider);
}

TEST(LedgerTest, KnowsTwoProvidersByTheirHosts) {
  EXPECT_EQ(provider_at("https://b.s3.eu-west-1.amazonaws.com"), "s3");
  EXPECT_EQ(provider_at("https://s3.cn-north-1.amazonaws.com.cn/x"), "s3");
  EXPECT_EQ(provider_at("https://STORAGE.googleapis.com:443/b/k"), "gcs");
  EXPECT_EQ(provider_at("https://b.storage.googleapis.com"), "gcs");
  for (const char* other :
       {"http://127.0.0.1:9000", "https://amazonaws.com.evil.example",
        "https://notamazonaws.com", "https://host/amazonaws.com",
        "https://host?storage.googleapis.com", ""}) {
    EXPECT_EQ(provider_at(other), "") << other;
  }
}

TEST(LedgerTest, WhoServesTheStoreSetsThePricesUnlessOneIsNamed) {
  EXPECT_EQ(priced({}, "gcs")->provider, "gcs");
  EXPECT_GT(priced({}, "gcs")->prices.get_per_1000, 0);
  EXPECT_EQ(priced({{"LEAT_PROVIDER", "s3"}}, "gcs")->provider, "s3");
  EXPECT_EQ(priced({{"LEAT_PROVIDER", "s3"}})->provider, "s3");
  EXPECT_EQ(priced({})->provider, "");
}

TEST(LedgerTest, FilesOfThisMachineHaveNoPrice) {
  EXPECT_EQ(priced({{"LEAT_PROVIDER", "s3"}}, std::nullopt)->provider, "");
}

TEST(LedgerTest, WhatAVariableCannotMeanIsRefusedByItsName) {
  for (const auto& [name, value] : Variables{{"LEAT_PROVIDER", "ibm"},
                                             {"LEAT_NAT", "perhaps"},
                                             {"LEAT_NODE_PER_HOUR", "much"}}) {
    for (const auto& provider : {std::optional<std::string>(""), {}}) {
      const auto wrong = priced({{name, value}}, provider);
      ASSERT_FALSE(wrong) << name;
      EXPECT_EQ(wrong.error().code(), ErrorCode::kInvalidArgument);
      EXPECT_THAT(wrong.error().message(), HasSubstr(name));
    }
  }
  const auto none = priced({{"LEAT_PRICES", "/no/such.toml"}}, "s3");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), ErrorCode::kNotFound);
  EXPECT_THAT(none.error().message(), HasSubstr("LEAT_PRICES: /no/such.toml"));
}

TEST(LedgerTest, PricesMayBeTheUsersOwn) {
  const std::string file = ::testing::TempDir() + "mine.toml";
  std::ofstream(file) << "[minio]\nget_per_1000 = 2.0\n";

  const auto mine = priced({{"LEAT_PRICES", file}, {"LEAT_PROVIDER", "minio"}});

  std::filesystem::remove(file);
  ASSERT_TRUE(mine) << mine.error().message();
  EXPECT_EQ(mine->provider, "minio");
  EXPECT_EQ(mine->prices.get_per_1000, 2);
  EXPECT_EQ(mine->prices.list_per_1000, 0);
}

Pricing one_of_each() {
  return {.provider = "mine",
          .prices = {.get_per_1000 = 1, .list_per_1000 = 10, .nat_per_gb = 4},
          .billing = {.node_per_hour = 3600, .is_behind_nat = true}};
}

TEST(LedgerTest, MetricsHaveThePriceOfWhatTheyCounted) {
  Metrics metrics;
  metrics.add(Metric::kStoreReads, 500);
  metrics.add(Metric::kStoreLists, 100);
  metrics.add(Metric::kStoreReadBytes, 250'000'000);
  metrics.add(Metric::kPipelineStalledNanoseconds, 6'000'000'000);

  price_metrics(metrics, /*accelerators_a_node=*/2, one_of_each(),
                {.processors = 1.5, .accelerators = {}});

  EXPECT_EQ(metrics.value(Metric::kStoreRequestNanodollars), 1'500'000'000);
  EXPECT_EQ(metrics.value(Metric::kStoreTransferNanodollars), 1'000'000'000);
  EXPECT_EQ(metrics.value(Metric::kPipelineStalledNanodollars), 3'000'000'000);
  EXPECT_EQ(metrics.value(Metric::kRuntimeProcessorMillijoules), 1'500);
  EXPECT_EQ(metrics.value(Metric::kRuntimeAcceleratorMillijoules),
            Metrics::kUnknown);
}

TEST(LedgerTest, WithoutAProviderNothingIsInvented) {
  Metrics metrics;
  metrics.add(Metric::kStoreReads, 500);

  price_metrics(metrics, 1, {}, {});

  EXPECT_EQ(metrics.value(Metric::kStoreRequestNanodollars), Metrics::kUnknown);
  EXPECT_EQ(metrics.value(Metric::kStoreTransferNanodollars),
            Metrics::kUnknown);
  EXPECT_EQ(metrics.value(Metric::kPipelineStalledNanodollars), 0);
  const auto told = nlohmann::json::parse(to_json(counts_of(metrics, 1), {}));
  EXPECT_EQ(told.at("gets"), 500);
  for (const char* absent : {"provider", "request_dollars", "transfer_dollars",
                             "processor_joules", "accelerator_joules"}) {
    EXPECT_FALSE(told.contains(absent)) << absent;
  }
}

}  // namespace
}  // namespace leat
