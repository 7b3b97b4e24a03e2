#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "leat/profiler/trial.h"

namespace leat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using std::chrono_literals::operator""ms;

TEST(RecordTest, ReadsWhatTheHookWrites) {
  const auto record = parse_record(
      R"({"rank": 3, "world_size": 4, "step_seconds": [0.5, 1],
          "wait_seconds": [0.1, 0], "supply_seconds": [], "rows": 32,
          "seen": 12, "loader": "a.B", "accelerator": null, "torch": "2.1",
          "supply_cpu_seconds": 0.25, "epoch_batches": 40, "workers": 3,
          "loads_ahead": true, "is_pipelined": false,
          "gradient_bytes": 4096, "gradient_buckets": 2,
          "measured_from_seconds": 7.5, "measured_until_seconds": 9,
          "measured_batches": 5})");

  ASSERT_TRUE(record);
  EXPECT_EQ(record->rank, 3u);
  EXPECT_THAT(record->step_seconds, ElementsAre(0.5, 1));
  EXPECT_THAT(record->wait_seconds, ElementsAre(0.1, 0));
  EXPECT_EQ(record->rows, 32u);
  EXPECT_EQ(record->seen, 12u);
  EXPECT_EQ(record->loader, "a.B");
  EXPECT_EQ(record->accelerator, "");
  EXPECT_EQ(record->supply_cpu_seconds, 0.25);
  EXPECT_EQ(record->epoch_batches, 40u);
  EXPECT_EQ(record->workers, 3u);
  EXPECT_TRUE(record->loads_ahead);
  EXPECT_FALSE(record->is_pipelined);
  EXPECT_EQ(record->gradient_bytes, 4096u);
  EXPECT_EQ(record->gradient_buckets, 2u);
  EXPECT_EQ(record->measured_from, TimePoint(7500ms));
  EXPECT_EQ(record->measured_until, TimePoint(9000ms));
  EXPECT_EQ(record->measured_batches, 5u);
}

TEST(RecordTest, WhatAScriptSpoiltIsAnErrorThatSaysHow) {
  const auto refusal = [](const std::string& steps, const std::string& rest) {
    const auto record =
        parse_record(R"({"seen": 1, "supply_seconds": [], "wait_seconds": [1],)"
                     R"("step_seconds": )" +
                     steps + rest);
    return record ? std::string("accepted") : record.error().message();
  };
  EXPECT_EQ(refusal("[1]", R"(, "rank": 0})"), "accepted");
  EXPECT_THAT(refusal("[1]", R"(, "rank": 0, "supply_cpu_seconds": -1})"),
              HasSubstr("supply_cpu_seconds"));
  EXPECT_THAT(refusal("[1]", R"(, "rank": 0, "measured_from_seconds": 1e300})"),
              HasSubstr("measured_from_seconds"));
  EXPECT_THAT(refusal("[1]", R"(, "rank": 0)"), HasSubstr("no JSON object"));
  EXPECT_THAT(refusal("[1]", "}"), HasSubstr("no count \"rank\""));
  EXPECT_THAT(refusal("[1]", R"(, "rank": -1})"), HasSubstr("\"rank\""));
  EXPECT_THAT(refusal("[1]", R"(, "rank": 99999999})"), HasSubstr("rank 9999"));
  EXPECT_THAT(refusal("[1e999]", R"(, "rank": 0})"), HasSubstr("no JSON"));
  EXPECT_THAT(refusal("[0]", R"(, "rank": 0})"), HasSubstr("took any time"));
  EXPECT_THAT(refusal("[-1]", R"(, "rank": 0})"), HasSubstr("no time"));
  EXPECT_THAT(refusal("[\"x\"]", R"(, "rank": 0})"), HasSubstr("no time"));
  EXPECT_THAT(refusal("[1, 2]", R"(, "rank": 0})"), HasSubstr("unequal"));
  EXPECT_THAT(refusal("7", R"(, "rank": 0})"), HasSubstr("no list"));
}

}  // namespace
}  // namespace leat
