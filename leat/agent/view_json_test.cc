#include "leat/agent/view_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "leat/agent/testing/sample_node.h"

namespace leat {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

json parsed(const NodeView& view, const ViewSince& since = {}) {
  const std::string text = view_json(view, since);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  return json::parse(text);
}

TEST(ViewJsonTest, SaysEveryFieldOfAJob) {
  NodeView view = testing::sample_node(1, 20);
  view.jobs[0].share = {.threads = 3,
                        .in_flight = 40,
                        .bytes_per_second = 5,
                        .ram_bytes = 6,
                        .disk_bytes = 7};

  const json job = parsed(view).at("jobs").at(0);

  EXPECT_EQ(job.at("id"), "job-1");
  EXPECT_EQ(job.at("name"), "resnet50");
  EXPECT_EQ(job.at("dataset"), "s3://photos/train");
  EXPECT_EQ(job.at("user"), 1000);
  EXPECT_EQ(job.at("user_name"), "ada");
  EXPECT_EQ(job.at("pids"), json({4000}));
  EXPECT_EQ(job.at("local_ranks"), 1);
  EXPECT_EQ(job.at("world_size"), 1);
  EXPECT_EQ(job.at("since_seconds"), testing::kSampleBegin);
  EXPECT_EQ(job.at("share"), json({{"threads", 3},
                                   {"in_flight", 40},
                                   {"bytes_per_second", 5},
                                   {"ram_bytes", 6},
                                   {"disk_bytes", 7}}));
  EXPECT_EQ(job.at("found_rate"), view.jobs[0].found_rate);
  EXPECT_EQ(job.at("predicted_rate"), 2100);
  EXPECT_EQ(job.at("confidence"), 0.8);
  EXPECT_EQ(job.at("compute_ceiling"), 2520);
  EXPECT_EQ(job.at("wait_fraction"), view.jobs[0].wait_fraction);
  EXPECT_EQ(job.at("stalls").size(), 2u);
  EXPECT_EQ(job.at("stalled_dollars"), 0.25);
  EXPECT_EQ(job.at("ledger"),
            json({{"gets", 4200},
                  {"lists", 3},
                  {"bytes", 420'000'000},
                  {"request_dollars", 0.125},
                  {"transfer_dollars", 0},
                  {"stalled_accelerator_seconds",
                   total_of(view.jobs[0].totals, counters::kWaitSeconds)},
                  {"stalled_dollars", 0.25}}));
  EXPECT_EQ(job.at("bottleneck"), "decode");
  EXPECT_EQ(job.at("cache"), json({{"ram_hits", 21000},
                                   {"disk_hits", 8400},
                                   {"peer_hits", 4200},
                                   {"misses", 8400},
                                   {"ram_bytes", 1 << 30},
                                   {"disk_bytes", 1LL << 34}}));
}

TEST(ViewJsonTest, SaysWhatTheNodeHasAndDoes) {
  const NodeView view = testing::sample_node(0, 0);

  const json all = parsed(view);

  EXPECT_EQ(all.at("format"), 1);
  EXPECT_EQ(all.at("last_decision"), 0);
  const json links = {{{"bucket", nullptr},
                       {"bytes_per_second", 1e9},
                       {"read_bytes_per_second", 0}},
                      {{"bucket", "s3://photos"},
                       {"bytes_per_second", 256 << 20},
                       {"read_bytes_per_second", 0}}};
  EXPECT_EQ(all.at("node"), json({{"name", "node-7"},
                                  {"time_seconds", testing::kSampleBegin},
                                  {"objective", "throughput"},
                                  {"cores", 32},
                                  {"cores_busy", 21.5},
                                  {"cores_busy_outside", 3.25},
                                  {"memory_bytes", 256LL << 30},
                                  {"in_flight", 512},
                                  {"links", links},
                                  {"processor_joules", nullptr},
                                  {"accelerator_joules", nullptr}}));
  for (const char* list : {"jobs", "decisions", "history"}) {
    EXPECT_EQ(all.at(list), json::array()) << list;
  }
}

TEST(ViewJsonTest, SpellsADecisionAsItsOptionAndLeavesOpenWhatIsNotFoundYet) {
  const json decisions = parsed(testing::sample_node(2, 20)).at("decisions");

  ASSERT_EQ(decisions.size(), 2u);
  EXPECT_EQ(decisions[0],
            json({{"number", 1},
                  {"time_seconds", testing::kSampleBegin + 10},
                  {"job", "job-2"},
                  {"job_name", "llm-tokens"},
                  {"setting", "threads"},
                  {"before", 4},
                  {"after", 6},
                  {"reason", "decode is the bottleneck: 4 threads at 97 %"},
                  {"expected_gain", 0.4},
                  {"found_gain", 0.37}}));
  EXPECT_TRUE(decisions[1].at("found_gain").is_null());
}

TEST(ViewJsonTest, GivesTheHistoryAColumnForEachQuantity) {
  NodeView view = testing::sample_node(2, 3);
  view.history[0].predicted_rate = 0;

  const json history = parsed(view).at("history");

  ASSERT_EQ(history.size(), 2u);
  for (const json& job : history) {
    ASSERT_EQ(job.size(), 10u);
    for (const auto& [name, column] : job.items()) {
      EXPECT_EQ(column.size(), name == "job" ? 1u : 4u) << name;
    }
  }
  EXPECT_EQ(history[1].at("job"), "job-2");
  EXPECT_EQ(history[1].at("time_seconds")[3], testing::kSampleBegin + 3);
  EXPECT_EQ(history[1].at("predicted_rate"), json({640, 640, 640, 640}));
  EXPECT_EQ(history[1].at("bytes_per_second")[0], 25'000'000);
  EXPECT_EQ(history[1].at("ram_bytes")[0], 8LL << 30);
  EXPECT_TRUE(history[1].at("disk_bytes")[0].is_null());
  EXPECT_TRUE(history[0].at("predicted_rate")[0].is_null());
}

TEST(ViewJsonTest, LeavesOutWhatTheReaderHas) {
  const NodeView view = testing::sample_node(2, 40);

  const json later = parsed(
      view, {.points_after = testing::kSampleBegin + 38, .decisions_after = 3});

  ASSERT_EQ(later.at("decisions").size(), 1u);
  EXPECT_EQ(later.at("decisions")[0].at("number"), 4);
  EXPECT_EQ(later.at("last_decision"), 4);
  EXPECT_EQ(later.at("history")[0].at("time_seconds"),
            json({testing::kSampleBegin + 39, testing::kSampleBegin + 40}));
  EXPECT_EQ(later.at("jobs").size(), 2u);
  EXPECT_EQ(
      parsed(view, {.points_after = testing::kSampleBegin + 40}).at("history"),
      json::array());
}

TEST(ViewJsonTest, IsJsonWhateverItsStringsHold) {
  const std::string text = view_json(testing::hostile_node());

  const json all = json::parse(text);
  EXPECT_EQ(all["node"]["name"], "</script><script>alert(1)</script>");
  EXPECT_EQ(all["jobs"][0]["name"],
            "<img src=x onerror=alert(1)>\uFFFD[2J\"\\\uFFFD}");
  EXPECT_TRUE(all["jobs"][1]["found_rate"].is_null());
  EXPECT_TRUE(all["jobs"][1]["compute_ceiling"].is_null());
}

TEST(ViewJsonTest, TellsNoCredentials) {
  NodeView view = testing::hostile_node();
  for (std::string* words :
       {&view.name, &view.objective, &view.jobs[0].id, &view.jobs[0].name,
        &view.jobs[0].bottleneck, &view.jobs[1].dataset,
        &view.decisions[0].decision.job, &view.decisions[0].job_name,
        &view.history[0].job}) {
    *words += " s3://AKIA:sec/ret@b/k?X-Amz-Signature=feed";
  }

  const std::string text = view_json(view);

  EXPECT_THAT(text, HasSubstr("https://host/path\""));
  for (const char* secret : {"hunter2", "AKIA", "sec/ret", "ret@", "feed"}) {
    EXPECT_THAT(text, Not(HasSubstr(secret)));
  }
}

}  // namespace
}  // namespace leat
