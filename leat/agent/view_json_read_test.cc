#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "leat/agent/testing/sample_node.h"
#include "leat/agent/view_json.h"

namespace leat {
namespace {

TEST(ReadViewJsonTest, ReadsWhatIsWritten) {
  for (const NodeView& view :
       {testing::sample_node(3, 45), testing::sample_node(0, 0), NodeView()}) {
    const std::string text = view_json(view);

    const auto read = read_view_json(text);

    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(view_json(*read), text);
  }
}

TEST(ReadViewJsonTest, RefusesWhatNoAgentWrote) {
  for (const char* text :
       {"", "{", "[]", "1", "{}", R"({"format": 2})", R"({"format": "1"})",
        "<html>", "\xff", R"({"format": 1}})"}) {
    const auto read = read_view_json(text);

    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code(), ErrorCode::kCorrupt);
  }
}

TEST(ReadViewJsonTest, TakesWhatItCannotUseForUnknown) {
  const auto read = read_view_json(R"({"format": 1, "node": [], "history": 7,
    "decisions": [{"setting": "paint"}, {"setting": "ram", "after": -1e300}, 3],
    "jobs": [{"name": "a\u001b[2Jb", "user": -1, "local_ranks": 1e300,
              "pids": [1e99, "x", 7], "share": {"threads": 1e19, "in_flight": 3},
              "found_rate": "fast", "stalls": [1], "cache": {"misses": 1.5}},
             null]})");

  ASSERT_TRUE(read) << read.error().message();
  ASSERT_EQ(read->jobs.size(), 2u);
  const JobView& job = read->jobs[0];
  EXPECT_EQ(job.name, "a\uFFFD[2Jb");
  EXPECT_EQ(job.user, 0u);
  EXPECT_EQ(job.local_ranks, 0u);
  EXPECT_EQ(job.pids, (std::vector<std::int32_t>{0, 0, 7}));
  EXPECT_FALSE(job.share.threads);
  EXPECT_EQ(job.share.in_flight, 3u);
  EXPECT_EQ(job.found_rate, 0);
  EXPECT_EQ(total_of(job.totals, counters::kCacheMisses), 1);
  ASSERT_EQ(read->decisions.size(), 1u);
  EXPECT_EQ(read->decisions[0].decision.after, 0);
  EXPECT_TRUE(read->history.empty());
}

TEST(ReadViewJsonTest, SurvivesWhatIsFlipped) {
  const std::string text = view_json(testing::sample_node(2, 12));
  std::mt19937 random(1);
  int read_ones = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string spoilt = text;
    for (int i = 0; i < 3; ++i) {
      spoilt[random() % spoilt.size()] = "0e{}[],:\"-9\\n"[random() % 13];
    }
    const auto read = read_view_json(spoilt);
    if (!read) continue;
    ++read_ones;
    EXPECT_TRUE(read_view_json(view_json(*read))) << spoilt;
  }
  EXPECT_GT(read_ones, 100);
}

}  // namespace
}  // namespace leat
