#include "leat/cli/jobs_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "leat/engine/read_text.h"

namespace leat {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kCluster = "nodes = 2\nthreads = 8\n";
constexpr std::string_view kJob =
    "[[jobs]]\nname = \"a\"\nsamples = 100\nceiling = 10\n";

std::string refusal_of(const std::string& text) {
  const auto runs = parse_jobs_file(text, "jobs.toml");
  EXPECT_FALSE(runs);
  return runs ? "" : runs.error().message();
}

TEST(JobsFileTest, TheExampleHas200JobsOn32NodesInThreeWays) {
  const auto text =
      read_text(LEAT_EXAMPLES_FOLDER "/jobs.toml", std::uint64_t{1} << 20);
  ASSERT_TRUE(text);

  const auto runs = parse_jobs_file(*text, "jobs.toml");

  ASSERT_TRUE(runs) << runs.error().message();
  ASSERT_EQ(runs->size(), 3u);
  for (const NamedSharing& run : *runs) {
    EXPECT_EQ(run.simulation.jobs.size(), 200u);
    EXPECT_EQ(run.simulation.nodes, 32u);
    EXPECT_TRUE(std::is_sorted(run.simulation.jobs.begin(),
                               run.simulation.jobs.end(),
                               [](const auto& a, const auto& b) {
                                 return a.arrives_seconds < b.arrives_seconds;
                               }));
  }
  EXPECT_EQ((*runs)[0].simulation.jobs.back().arrives_seconds, 0);
  EXPECT_GT((*runs)[1].simulation.jobs.back().arrives_seconds, 3600);
}

TEST(JobsFileTest, KeysBecomeWhatTheySay) {
  const auto runs = parse_jobs_file(
      std::string(kCluster) + std::string(kJob) +
          "decode = \"20ms\"\nlatency = \"50ms\"\nsample_bytes = \"1kB\"\n"
          "epochs = 3\nnodes = 2\nkept_bytes = \"6kB\"\nsaved = \"15ms\"\n",
      "jobs.toml");

  ASSERT_TRUE(runs) << runs.error().message();
  const SimulatedJob& job = runs->front().simulation.jobs.front();
  EXPECT_EQ(job.samples, 150);  // Half of three epochs.
  EXPECT_EQ(job.truth.compute_ceiling, 10);
  EXPECT_DOUBLE_EQ(job.truth.rate_per_thread, 50);
  EXPECT_DOUBLE_EQ(job.truth.latency_seconds, 0.05);
  EXPECT_EQ(job.kept_bytes, 6000);
  EXPECT_EQ(job.truth.dataset_bytes, 600000);
  EXPECT_DOUBLE_EQ(job.truth.saved_seconds, 0.015);
}

TEST(JobsFileTest, BucketsHaveABandwidthAndJobsABucket) {
  const auto runs = parse_jobs_file(
      std::string(kCluster) +
          "[[buckets]]\nname = \"near\"\nbandwidth = \"1GB\"\n"
          "[[buckets]]\nname = \"far\"\nbandwidth = \"20MB\"\n" +
          std::string(kJob) + "bucket = \"far\"\n" + std::string(kJob),
      "jobs.toml");

  ASSERT_TRUE(runs) << runs.error().message();
  const SharingSimulation& simulation = runs->front().simulation;
  EXPECT_EQ(simulation.node.bucket_bytes_per_second,
            (std::vector<double>{1e9, 2e7}));
  ASSERT_EQ(simulation.jobs.size(), 2u);
  EXPECT_EQ(
      simulation.jobs[0].buckets.size() + simulation.jobs[1].buckets.size(),
      1u);
  for (const SimulatedJob& job : simulation.jobs) {
    for (const std::size_t bucket : job.buckets) EXPECT_EQ(bucket, 1u);
  }
}

TEST(JobsFileTest, WhoDecodesFasterSavesLessByAHit) {
  const auto runs = parse_jobs_file(
      std::string(kCluster) + std::string(kJob) +
          "decode = \"20ms\"\nsaved = \"15ms\"\nspread = 1\ncount = 9\n",
      "jobs.toml");

  ASSERT_TRUE(runs) << runs.error().message();
  double least = 1;
  double most = 0;
  for (const SimulatedJob& job : runs->front().simulation.jobs) {
    const double decode = 1 / job.truth.rate_per_thread;
    EXPECT_NEAR(job.truth.saved_seconds, 0.75 * decode, 1e-9);
    least = std::min(least, decode);
    most = std::max(most, decode);
  }
  EXPECT_GT(most, 1.1 * least);
}

TEST(JobsFileTest, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(refusal_of(std::string(kJob)), HasSubstr("nodes is missing"));
  EXPECT_THAT(refusal_of(std::string(kCluster)), HasSubstr("[[jobs]]"));
  EXPECT_THAT(refusal_of(std::string(kCluster) + std::string(kJob) +
                         "decode = \"2ms\"\nsaved = \"3ms\"\n"),
              HasSubstr("saved is part of decode"));
  EXPECT_THAT(
      refusal_of(std::string(kCluster) + std::string(kJob) + "speed = 3\n"),
      HasSubstr("speed"));
  EXPECT_THAT(refusal_of(std::string(kCluster) +
                         "[[jobs]]\nname = \"a\"\nsamples = 1\n"),
              HasSubstr("ceiling or decode must be given"));
  EXPECT_THAT(
      refusal_of(std::string(kCluster) + std::string(kJob) + "spread = 2\n"),
      HasSubstr("spread must be a number from 0 to 1"));
  const std::string bucket = "[[buckets]]\nname = \"b\"\nbandwidth = \"1GB\"\n";
  EXPECT_THAT(refusal_of(std::string(kCluster) + bucket + std::string(kJob) +
                         "bucket = \"c\"\n"),
              HasSubstr("bucket is the name of none"));
  EXPECT_THAT(
      refusal_of(std::string(kCluster) + bucket + bucket + std::string(kJob)),
      HasSubstr("name is that of another bucket"));
  EXPECT_THAT(refusal_of(std::string(kCluster) + std::string(kJob) +
                         "[[buckets]]\nname = \"b\"\n"),
              HasSubstr("bandwidth is missing"));
  EXPECT_THAT(refusal_of(std::string(kCluster) + std::string(kJob) +
                         "[[buckets]]\nname = \"b\"\nbandwidth = 0\n"),
              HasSubstr("bandwidth must be more than 0"));
  EXPECT_THAT(refusal_of(std::string(kCluster) + std::string(kJob) +
                         "[[arrivals]]\nshape = \"storm\"\n"),
              HasSubstr("burst"));
}

}  // namespace
}  // namespace leat
