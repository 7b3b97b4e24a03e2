#include "leat/profiler/node_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(NodeListTest, IsWhatSlurmWrites) {
  const auto names = [](const std::string& list) {
    const auto parsed = parse_node_list(list);
    EXPECT_TRUE(parsed) << list;
    return parsed ? *parsed : std::vector<std::string>();
  };

  EXPECT_THAT(names("node[01-03,07],gpu5"),
              ElementsAre("node01", "node02", "node03", "node07", "gpu5"));
  EXPECT_THAT(names("a"), ElementsAre("a"));
  EXPECT_THAT(names("n[9-11]"), ElementsAre("n9", "n10", "n11"));
  EXPECT_THAT(names("n[099-101]x"), ElementsAre("n099x", "n100x", "n101x"));
  EXPECT_THAT(names("r[1-2]n[1,3]"),
              ElementsAre("r1n1", "r1n3", "r2n1", "r2n3"));
  EXPECT_THAT(names("me@a.example,b-c_d"),
              ElementsAre("me@a.example", "b-c_d"));
}

TEST(NodeListTest, SaysWhatIsNoList) {
  const auto refusal = [](const std::string& list) {
    const auto parsed = parse_node_list(list);
    return parsed ? std::string("accepted") : parsed.error().message();
  };

  EXPECT_THAT(refusal("node[1-3"), HasSubstr("do not match"));
  EXPECT_THAT(refusal("node1-3]"), HasSubstr("do not match"));
  EXPECT_THAT(refusal("n[[1]]"), HasSubstr("do not match"));
  EXPECT_THAT(refusal("n[3-1]"), HasSubstr("no range"));
  EXPECT_THAT(refusal("n[]"), HasSubstr("no range"));
  EXPECT_THAT(refusal("n[1-]"), HasSubstr("no range"));
  EXPECT_THAT(refusal("n[-1]"), HasSubstr("no range"));
  EXPECT_THAT(refusal("n[a-b]"), HasSubstr("no range"));
  EXPECT_THAT(refusal("n[0-4000000000]"), HasSubstr("no range"));
  EXPECT_THAT(refusal("n[0-9999]m[0-9999]"), HasSubstr("no range"));
  EXPECT_THAT(refusal("n[99999999999]"), HasSubstr("no range"));
  EXPECT_THAT(refusal("a[0-9999],b"), HasSubstr("too long"));
  EXPECT_THAT(refusal(""), HasSubstr("\"\", which is no name"));
  EXPECT_THAT(refusal("a,,b"), HasSubstr("\"\", which is no name"));
  EXPECT_THAT(refusal("-oProxyCommand=x"), HasSubstr("is no name"));
  EXPECT_THAT(refusal("a,-v"), HasSubstr("\"-v\", which is no name"));
  EXPECT_THAT(refusal("a b"), HasSubstr("\"a b\", which is no name"));
  EXPECT_THAT(refusal("a;b"), HasSubstr("node[01-03,07],gpu5"));
}

TEST(NodeListTest, AnAllocationIsReachedBySrunWithAllCoresOfEachNode) {
  const auto commands = commands_on_nodes(
      "slurm", fake_env({{"SLURM_JOB_NODELIST", "n[1-2],big"},
                         {"SLURM_JOB_CPUS_PER_NODE", "16(x2),64"}}));

  ASSERT_TRUE(commands);
  EXPECT_EQ(commands->first_address, "n1");
  ASSERT_EQ(commands->prefixes.size(), 3u);
  EXPECT_THAT(commands->prefixes[2],
              ElementsAre("srun", "--nodes=1", "--ntasks=1", "--nodelist=big",
                          "--overlap", "--mem=0", "--export=ALL",
                          "--cpu-bind=none", "--cpus-per-task=64"));
  EXPECT_EQ(commands->prefixes[1].back(), "--cpus-per-task=16");
}

TEST(NodeListTest, WithoutAnAllocationItSaysSo) {
  const auto commands = commands_on_nodes("slurm", fake_env({}));

  ASSERT_FALSE(commands);
  EXPECT_EQ(commands.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(commands.error().message(), HasSubstr("SLURM_JOB_NODELIST"));
}

TEST(NodeListTest, HostsAreReachedBySsh) {
  const auto commands = commands_on_nodes("me@a,b", fake_env({}));

  ASSERT_TRUE(commands);
  EXPECT_EQ(commands->first_address, "a");
  ASSERT_EQ(commands->prefixes.size(), 2u);
  EXPECT_THAT(commands->prefixes[0],
              ElementsAre("ssh", "-o", "BatchMode=yes", "me@a"));
}

}  // namespace
}  // namespace leat
