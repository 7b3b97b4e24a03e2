#include "leat/cli/top_screen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "leat/agent/testing/sample_node.h"

namespace leat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::vector<std::string> lines_of(const NodeView& view,
                                  const ScreenSize& size = {}) {
  std::istringstream in(top_screen(view, size));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::size_t characters(const std::string& text) {
  return std::size_t(std::ranges::count_if(text, [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

TEST(TopScreenTest, ShowsNodeJobsAndDecisions) {
  EXPECT_THAT(
      lines_of(testing::sample_node(2, 20)),
      ElementsAre(
          "leat top  node-7  throughput  2 jobs",
          "cores 22.3 of 32 in use, 3.2 outside of Leat   requests 72 of 512 "
          "given out",
          "read in all: 381.5 MiB/s of 953.7 MiB/s",
          "read of s3://photos: 128 MiB/s of 256 MiB/s", "",
          "JOB         BOUND BY  SAMPLES/S  PREDICTED  WAITING  THREADS  "
          "REQUESTS  BANDWIDTH    RAM  DISK  HITS  DATASET",
          "resnet50    decode        2,197      2,100     17 %        5        "
          "32        any  8 GiB   any  80 %  s3://photos/train",
          "llm-tokens  training        666        640     17 %        6        "
          "40        any  8 GiB   any  80 %  s3://text/windows",
          "", "DECISIONS, seconds ago",
          "0.0 s  resnet50  threads 4 -> 6: decode is the bottleneck: 4 "
          "threads "
          "at 97 % (expected +40 %)",
          "-10.0 s  llm-tokens  threads 4 -> 6: decode is the bottleneck: 4 "
          "threads at 97 % (expected +40 %, found +37 %)"));
}

TEST(TopScreenTest, SaysWhatIsNotKnownAndWhatIsNotBounded) {
  NodeView view;
  view.jobs.push_back({.id = "job-1"});
  view.jobs[0].share.bytes_per_second = 90 << 20;
  view.jobs[0].found_rate = 1234567.8;

  view.decisions.emplace_back();
  view.decisions.back().decision.job = "job-0";
  view.decisions.back().job_name = "gone";

  EXPECT_THAT(lines_of(view)[1], ::testing::Not(::testing::HasSubstr("given")));
  EXPECT_THAT(lines_of(view).back(), ::testing::HasSubstr("  gone  "));
  const std::string job = lines_of(view)[4];

  EXPECT_EQ(
      job,
      "job-1  -         1,234,568          -      0 %      any       any   "
      "90 MiB/s  any   any     -");
}

TEST(TopScreenTest, FitsItsTerminal) {
  NodeView view = testing::sample_node(50, 700);
  view.jobs[3].name = "größer als jede Spalte es je erlauben würde 字字字";

  for (const ScreenSize size :
       {ScreenSize{80, 24}, ScreenSize{40, 10}, ScreenSize{200, 70},
        ScreenSize{1, 1}, ScreenSize{20, 5}}) {
    const auto lines = lines_of(view, size);

    EXPECT_LE(lines.size(), size.rows);
    for (const std::string& line : lines) {
      EXPECT_LE(characters(line), size.columns) << line;
    }
  }
}

TEST(TopScreenTest, LeavesOutJobsBeforeItLeavesOutAllDecisions) {
  const auto lines = lines_of(testing::sample_node(50, 700), {200, 24});

  ASSERT_EQ(lines.size(), 24u);
  EXPECT_EQ(lines[19], "and 37 more");
  EXPECT_EQ(lines[21], "DECISIONS, seconds ago");
  EXPECT_THAT(lines[22], StartsWith("0.0 s  "));
}

TEST(TopScreenTest, HasNoTableOfDecisionsWhereThereAreNone) {
  EXPECT_THAT(top_screen(testing::sample_node(1, 5), {}),
              Not(HasSubstr("DECISIONS")));
  EXPECT_EQ(lines_of(testing::sample_node(0, 5)).size(), 6u);
}

}  // namespace
}  // namespace leat
