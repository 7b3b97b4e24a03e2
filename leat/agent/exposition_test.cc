#include "leat/agent/exposition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "leat/agent/testing/sample_node.h"

namespace leat {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// The form that the format allows for a sample, and promtool for its labels.
const std::regex kSample(
    R"re([a-z_]+(\{[a-z]+="([^"\\\n]|\\\\|\\"|\\n)*"(,[a-z]+="([^"\\\n]|\\\\|\\"|\\n)*")*\})? [-+0-9.e]+)re");

TEST(ExpositionTest, IsOneTypedGroupAMetricWithoutDuplicates) {
  const std::string text = exposition(testing::sample_node(50, 700));

  EXPECT_EQ(text.back(), '\n');
  std::set<std::string> names;
  std::set<std::string> series;
  std::string name;
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with("# HELP ")) {
      name = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_TRUE(names.insert(name).second) << line;
      EXPECT_EQ(name.rfind("leat_agent_", 0), 0u);
    } else if (line.starts_with("# TYPE ")) {
      const bool is_total = name.ends_with("_total");
      EXPECT_EQ(line, "# TYPE " + name + (is_total ? " counter" : " gauge"));
    } else {
      EXPECT_TRUE(std::regex_match(line, kSample)) << line;
      EXPECT_EQ(line.substr(0, line.find_first_of("{ ")), name);
      EXPECT_TRUE(series.insert(line.substr(0, line.rfind(' '))).second)
          << line;
    }
  }
  EXPECT_GT(series.size(), 50u * 15);
}

TEST(ExpositionTest, SaysWhatTheViewSays) {
  NodeView view = testing::sample_node(1, 40);
  view.jobs[0].share.bytes_per_second = 90'000'000'000'000;
  view.jobs[0].wait_fraction = 0.1;
  view.jobs[0].totals[&counters::kWaitSeconds] = 7;
  view.processor_joules = 1500.5;

  const std::string text = exposition(view);

  for (const char* line : {
           "leat_agent_node_cores 32\n",
           "leat_agent_busy_cores{of=\"outside\"} 3.25\n",
           "leat_agent_node_memory_bytes 274877906944\n",
           "leat_agent_node_requests 512\n",
           ("leat_agent_link_limit_bytes_per_second{bucket=\"\"} "
            "1000000000\n"),
           ("leat_agent_link_limit_bytes_per_second{bucket=\"s3://photos\"} "
            "268435456\n"),
           ("leat_agent_link_bytes_per_second{bucket=\"s3://photos\"} "
            "134217728\n"),
           "leat_agent_jobs 1\n",
           "leat_agent_decisions_total 4\n",
           ("leat_agent_job_info{job=\"job-1\",name=\"resnet50\","
            "dataset=\"s3://photos/train\",user=\"1000\"} 1\n"),
           "leat_agent_job_start_timestamp_seconds{job=\"job-1\"} 1800000000\n",
           "leat_agent_share_threads{job=\"job-1\"} 6\n",
           "leat_agent_share_requests{job=\"job-1\"} 32\n",
           "leat_agent_share_bytes_per_second{job=\"job-1\"} 90000000000000\n",
           ("leat_agent_share_cache_bytes{job=\"job-1\",tier=\"ram\"} "
            "8589934592\n"),
           "leat_agent_predicted_samples_per_second{job=\"job-1\"} 2100\n",
           "leat_agent_ceiling_samples_per_second{job=\"job-1\"} 2520\n",
           "leat_agent_prediction_confidence_ratio{job=\"job-1\"} 0.8\n",
           "leat_agent_wait_ratio{job=\"job-1\"} 0.1\n",
           "leat_agent_node_joules_total{of=\"processors\"} 1500.5\n",
           "leat_agent_reads_total{job=\"job-1\"} 8400\n",
           "leat_agent_lists_total{job=\"job-1\"} 3\n",
           "leat_agent_read_bytes_total{job=\"job-1\"} 840000000\n",
           "leat_agent_request_dollars_total{job=\"job-1\"} 0.125\n",
           "leat_agent_transfer_dollars_total{job=\"job-1\"} 0\n",
           "leat_agent_stalled_seconds_total{job=\"job-1\"} 7\n",
           "leat_agent_stalled_dollars_total{job=\"job-1\"} 0.25\n",
           "leat_agent_cache_hits_total{job=\"job-1\",tier=\"disk\"} 16800\n",
           "leat_agent_cache_misses_total{job=\"job-1\"} 16800\n",
           "leat_agent_cache_bytes{job=\"job-1\",tier=\"disk\"} 17179869184\n",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(
      text, AllOf(Not(HasSubstr("share_cache_bytes{job=\"job-1\",tier=\"disk")),
                  Not(HasSubstr("of=\"accelerators"))));
}

TEST(ExpositionTest, LeavesOutWhatIsNotKnown) {
  NodeView view = testing::sample_node(1, 1);
  view.jobs[0].predicted_rate = 0;
  view.jobs[0].compute_ceiling.reset();
  view.jobs[0].share = {};
  view.jobs[0].found_rate = NAN;
  view.jobs[0].totals[&counters::kStalledDollars] = 0;
  view.jobs[0].totals.erase(&counters::kRequestDollars);
  view.jobs[0].totals.erase(&counters::kTransferDollars);

  const std::string text = exposition(view);

  EXPECT_THAT(text, AllOf(Not(HasSubstr("predicted_samples_per_second{")),
                          Not(HasSubstr("ceiling_samples_per_second{")),
                          Not(HasSubstr("leat_agent_share_threads{")),
                          Not(HasSubstr("dollars_total{")),
                          Not(HasSubstr("node_joules_total{")),
                          Not(HasSubstr("found_samples_per_second{"))));
}

TEST(ExpositionTest, EscapesLabelsAndTellsNoCredentials) {
  const std::string text = exposition(testing::hostile_node());

  EXPECT_THAT(text, HasSubstr(R"(name="<img src=x onerror=alert(1)>)"));
  EXPECT_THAT(text, HasSubstr(R"([2J\"\\)"));
  EXPECT_THAT(text, HasSubstr(R"(cause="bad\"cause\\)"));
  EXPECT_THAT(text, HasSubstr("dataset=\"https://host/path\""));
  EXPECT_THAT(text, AllOf(Not(HasSubstr("hunter2")), Not(HasSubstr("feed"))));
  for (const std::string& line : lines_of(text)) {
    if (!line.starts_with('#')) {
      EXPECT_TRUE(std::regex_match(line, kSample)) << line;
    }
  }
}

TEST(ExpositionTest, HasAPageWithARowForEachMetric) {
  const std::string page = agent_metrics_page();

  for (const std::string& line :
       lines_of(exposition(testing::sample_node(1, 1)))) {
    if (!line.starts_with("# TYPE ")) continue;
    const std::string name = line.substr(7, line.find(' ', 7) - 7);
    EXPECT_THAT(page, HasSubstr("| `" + name + "` | "));
  }
}

}  // namespace
}  // namespace leat
