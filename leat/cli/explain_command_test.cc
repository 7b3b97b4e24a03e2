// `leat explain`: for a loader that runs here, and for a record of one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "leat/cli/commands.h"
#include "leat/cli/testing/command_test.h"
#include "leat/tune/testing/synthetic_pipeline.h"
#include "leat/tune/tuner.h"

namespace leat {
namespace {

using ::testing::HasSubstr;

using Outcome = testing::CommandOutcome;

class ExplainCommandTest : public testing::CommandTest {
 protected:
  Outcome run(std::vector<std::string> words,
              testing::Environment more = {}) const {
    words.insert(words.begin(), "explain");
    return CommandTest::run({&kExplainCommand}, std::move(words),
                            std::move(more));
  }
};

/// 20 s of a loader that its tuner took from 1 request in flight to many.
std::string recorded() {
  Observation limits;
  limits.most_threads = 8;
  limits.most_in_flight = 512;
  limits.cores = 2;
  SyntheticPipeline pipeline({.latency_seconds = 0.02,
                              .task_seconds = 1e-4,
                              .training_seconds = 0.002},
                             {.threads = 1, .in_flight = 1}, limits);
  Tuner tuner;
  std::string text;
  for (int i = 0; i < 20; ++i) {
    const Observation& now = pipeline.run(1);
    text += to_json(now) + "\n";
    pipeline.set(tuner.observe(now).settings);
  }
  return text;
}

TEST_F(ExplainCommandTest, ReplaysWhatATunerSaw) {
  put("tuner.jsonl", recorded());

  const Outcome outcome = run({"--replay", path("tuner.jsonl")});

  EXPECT_EQ(outcome.code, ExitCode::kDone) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("bottleneck: training"));
  EXPECT_THAT(outcome.out, HasSubstr("one more core: "));
  EXPECT_THAT(outcome.out, HasSubstr("max_in_flight 1 -> 15: bottleneck "
                                     "max_in_flight"));
  const Outcome json = run({"--replay", path("tuner.jsonl"), "--json"});
  const auto report = nlohmann::json::parse(json.out);
  EXPECT_EQ(report["bottleneck"], "training");
  ASSERT_FALSE(report["decisions"].empty());
  EXPECT_EQ(report["decisions"][0]["setting"], "max_in_flight");
  EXPECT_GT(report["decisions"][0]["found_gain"].get<double>(), 5);
}

TEST_F(ExplainCommandTest, ExplainsALoaderThatItRuns) {
  for (int i = 0; i < 64; ++i) {
    put("data/" + std::to_string(i) + ".bin", "some bytes");
  }

  const Outcome outcome = run({path("data"), "--batch-size", "8", "--for", "4s",
                               "--step-time", "5ms", "--json"});

  EXPECT_EQ(outcome.code, ExitCode::kDone) << outcome.err;
  const auto report = nlohmann::json::parse(outcome.out);
  EXPECT_GT(report["samples_per_second"].get<double>(), 0);
  EXPECT_EQ(report["stages"].size(), 3u);
  EXPECT_EQ(report["next"].size(), 3u);
}

TEST_F(ExplainCommandTest, SaysWhatIsMissingOrWrong) {
  EXPECT_THAT(run({}).err, HasSubstr("a URL, or --replay"));
  EXPECT_THAT(run({"--replay", path("none")}).err, HasSubstr("none"));
  put("bad.jsonl", "{}\nnot an object\n");
  EXPECT_THAT(run({"--replay", path("bad.jsonl")}).err, HasSubstr("line 2 of"));
  put("short.jsonl", "{}\n");
  EXPECT_THAT(run({"--replay", path("short.jsonl")}).err,
              HasSubstr("short.jsonl holds too little"));
  put("data/1.bin", "bytes");
  EXPECT_THAT(run({path("data"), "--batch-size", "1", "--for", "10ms"},
                  {{"LEAT_TUNE", "off"}})
                  .err,
              HasSubstr("LEAT_TUNE=off"));
}

}  // namespace
}  // namespace leat
