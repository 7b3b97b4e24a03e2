// `leat what-if` on reports as `leat profile` writes them, and as nobody
// should.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "leat/cli/commands.h"
#include "leat/cli/testing/command_test.h"

namespace leat {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;

/// 100 ms of compute, then 50 of fetching: one after the other.
Json small_report() {
  return Json::parse(R"({
    "leat_profile": 1, "cores": 2, "loader": "torch.DataLoader",
    "settings": {"nodes": 1, "nproc_per_node": 1},
    "parts": {"compute": {"seconds": 0.1}, "preparation": {"seconds": 0},
              "fetch": {"seconds": 0.05}},
    "supply_seconds": {"warm": 0, "cold": 0.05}, "supply_cpu_seconds": null,
    "fetch_a_batch": {"gets": 2, "bytes": 10, "latency_share": 0.9}})");
}

using Outcome = testing::CommandOutcome;

class WhatIfCommandTest : public testing::CommandTest {
 protected:
  Outcome run(const std::string& text,
              std::vector<std::string> words = {}) const {
    words.insert(words.begin(), {"what-if", put("report", text)});
    return CommandTest::run({&kWhatIfCommand}, std::move(words));
  }
};

TEST_F(WhatIfCommandTest, SaysWhatRemovesTheWaitAndWhatWasNotMeasured) {
  const Outcome done = run(small_report().dump());

  EXPECT_EQ(done.code, ExitCode::kDone) << done.err;
  EXPECT_THAT(done.out, HasSubstr("fetch (50.0 ms) goes with batches made"));
  EXPECT_THAT(done.out, HasSubstr("cached       0:1.00 "));
  EXPECT_THAT(done.out, HasSubstr("cores        - the CPU time"));
}

TEST_F(WhatIfCommandTest, WithoutTheTimeOfABatchNoCurveIsDrawn) {
  Json report = small_report();
  report["supply_seconds"]["cold"] = nullptr;
  const Outcome done = run(report.dump(), {"--json"});

  ASSERT_EQ(done.code, ExitCode::kDone) << done.err;
  const Json told = Json::parse(done.out);
  for (const auto& [knob, curve] : told["curves"].items()) {
    EXPECT_TRUE(curve["points"].empty()) << knob;
    EXPECT_NE(curve["why_not"], "") << knob;
  }
  EXPECT_THAT(run(report.dump()).out,
              HasSubstr("accelerator  - the time to make a batch"));
  EXPECT_THAT(run(report.dump()).out,
              HasSubstr("goes with nothing that was measured"));
}

TEST_F(WhatIfCommandTest, ALoaderThatLoadsAheadIsNotToldToDoSo) {
  Json report = small_report();
  report["loader"] = "leat.torch.DataLoader";
  ASSERT_THAT(run(report.dump()).out, HasSubstr("batches made while training"));

  report["loads_ahead"] = true;
  report["is_pipelined"] = true;
  const Outcome done = run(report.dump());

  ASSERT_EQ(done.code, ExitCode::kDone) << done.err;
  EXPECT_THAT(done.out, Not(HasSubstr("batches made while training")));
}

TEST_F(WhatIfCommandTest, ASmallChangeIsToldAsAShareAndNotAsNone) {
  Json report = small_report();
  report["parts"]["fetch"]["seconds"] = 0.004;
  report["supply_seconds"] = {{"warm", 0.05}, {"cold", 0.104}};
  report["fetch_a_batch"] = {{"latency_share", 0.99}};
  const Outcome done = run(report.dump());

  ASSERT_EQ(done.code, ExitCode::kDone) << done.err;
  EXPECT_THAT(done.out, HasSubstr("% less latency"));
  EXPECT_THAT(done.out, Not(HasSubstr("1/1.")));
  EXPECT_THAT(done.out, Not(HasSubstr("1.0 times")));
}

TEST_F(WhatIfCommandTest, JsonHasEveryCurveAndRemoval) {
  const Outcome done = run(small_report().dump(), {"--json"});

  ASSERT_EQ(done.code, ExitCode::kDone) << done.err;
  const Json told = Json::parse(done.out);
  EXPECT_EQ(told["curves"].size(), 8u);
  EXPECT_NEAR(
      told["curves"]["cached"]["points"][5]["step_seconds"].get<double>(),
      0.125, 1e-9);
  EXPECT_EQ(told["removals"][0]["part"], "fetch");
  EXPECT_EQ(told["removals"][0]["changes"][0]["change"], "load_ahead");
}

TEST_F(WhatIfCommandTest, SeveralThingsCanBeOtherwiseAtOnce) {
  const Outcome done = run(small_report().dump(),
                           {"--with", "cached=0.5", "accelerator=2", "--json"});
  const Outcome words = run(small_report().dump(), {"--with", "cached=1"});

  ASSERT_EQ(done.code, ExitCode::kDone) << done.err;
  const Json asked = Json::parse(done.out)["asked"];
  EXPECT_EQ(asked["with"], Json({{"cached", 0.5}, {"accelerator", 2.0}}));
  EXPECT_NEAR(asked["step_seconds"].get<double>(), 0.075, 1e-9);
  EXPECT_NEAR(asked["speedup"].get<double>(), 2, 1e-9);
  EXPECT_THAT(words.out, HasSubstr("with cached=1: 100 ms a step, 1.50 times"));
}

TEST_F(WhatIfCommandTest, WhatIsAskedWronglyIsRefusedByName) {
  for (const char* wrong : {"cached", "cached=", "cached=x", "=", "cores=2",
                            "ram=1", "cached=2", "accelerator=nan"}) {
    const Outcome done = run(small_report().dump(), {"--with", wrong});

    EXPECT_EQ(done.code, ExitCode::kWrongUsage) << wrong;
    EXPECT_THAT(done.err, HasSubstr(std::string(wrong).substr(0, 3)));
  }
}

TEST_F(WhatIfCommandTest, AReportThatCannotBeIsRefusedByName) {
  const auto refusal = [&](auto spoil) {
    Json report = small_report();
    spoil(report);
    const Outcome done = run(report.dump());
    EXPECT_EQ(done.code, ExitCode::kWrongUsage);
    return done.err;
  };

  EXPECT_THAT(refusal([](Json& r) { r.erase("leat_profile"); }),
              HasSubstr("is no report of leat profile"));
  EXPECT_THAT(refusal([](Json& r) { r["leat_profile"] = 9; }),
              HasSubstr("version 9"));
  EXPECT_THAT(refusal([](Json& r) { r["failed"] = "no such file"; }),
              HasSubstr("the profile failed: no such file"));
  EXPECT_THAT(refusal([](Json& r) { r["parts"]["fetch"]["seconds"] = -1; }),
              HasSubstr("parts.fetch.seconds is no number"));
  EXPECT_THAT(refusal([](Json& r) { r["parts"] = "all"; }),
              HasSubstr("parts.compute.seconds is missing"));
  EXPECT_THAT(refusal([](Json& r) { r["settings"]["nodes"] = 1e12; }),
              HasSubstr("settings.nodes is no count"));
  EXPECT_THAT(refusal([](Json& r) { r["fetch_a_batch"]["latency_share"] = 7; }),
              HasSubstr("a share of 7"));
  EXPECT_THAT(refusal([](Json& r) { r = Json::array(); }),
              HasSubstr("is no report"));
}

TEST_F(WhatIfCommandTest, WhatIsNotJsonIsNoReport) {
  EXPECT_THAT(run("{\"leat_profile\": 1,").err, HasSubstr("is no report"));
}

}  // namespace
}  // namespace leat
