#include "leat/engine/loader/allowance.h"

#include <gtest/gtest.h>

namespace leat {
namespace {

constexpr std::uint64_t kManyFiles = 1 << 20;
const RankLimits kUsual{.in_flight = 100, .threads = 4, .cores = 4};

TEST(AllowanceTest, GivesMoreOnlyOfWhatNobodyAskedFor) {
  RankLimits asked = kUsual;
  asked.in_flight_was_asked = true;
  asked.threads_were_asked = true;

  const Allowance open(kUsual, kManyFiles, /*calls_users=*/true);
  const Allowance said(asked, kManyFiles, /*calls_users=*/true);

  EXPECT_EQ(open.most().threads, 16);
  EXPECT_EQ(open.most().in_flight, 400);
  EXPECT_EQ(said.most().threads, 4);
  EXPECT_EQ(said.most().in_flight, 100);
  EXPECT_EQ(said.most_threads(), 4);
}

TEST(AllowanceTest, OpensNoMoreRequestsThanThereAreFilesFor) {
  const Allowance few(kUsual, 400, false);
  const Allowance fewer(kUsual, 40, false);

  EXPECT_EQ(few.most().in_flight, 200);
  EXPECT_EQ(fewer.most().in_flight, 100);
}

TEST(AllowanceTest, GivesTwiceTheThreadsToATunerAloneOnItsNode) {
  RankLimits shared = kUsual;
  shared.local_ranks = 2;

  EXPECT_EQ(Allowance(kUsual, kManyFiles, false).most_threads(), 8);
  EXPECT_EQ(Allowance(kUsual, kManyFiles, false).most().threads, 4);
  EXPECT_EQ(Allowance(shared, kManyFiles, false).most_threads(), 4);
}

TEST(AllowanceTest, UsesWhatIsUsualUntilSomebodyChooses) {
  Allowance allowance(kUsual, kManyFiles, false);

  EXPECT_EQ(allowance.most_settings().in_flight, 100);
  EXPECT_EQ(allowance.most_settings().threads, 4);

  allowance.choose({.threads = 2, .in_flight = 300});

  EXPECT_EQ(allowance.most_settings().in_flight, 400);
  EXPECT_EQ(allowance.most_settings().threads, 8);
  EXPECT_EQ(allowance.now().in_flight, 100);
  EXPECT_EQ(allowance.settle().settings.in_flight, 300);
  EXPECT_EQ(allowance.now().in_flight, 300);
  EXPECT_EQ(allowance.now().threads, 2);
}

TEST(AllowanceTest, ChoosesWithinWhatIsAllowed) {
  Allowance allowance(kUsual, kManyFiles, false);
  allowance.choose({.threads = 8, .in_flight = 300, .lookahead = 7});
  Share share;
  share.threads = 3;
  share.in_flight = 0;
  share.bytes_per_second = 5;
  allowance.allow(share);

  const Allowance::InForce now = allowance.settle();

  EXPECT_EQ(now.settings.threads, 3);
  EXPECT_EQ(now.settings.in_flight, 1);
  EXPECT_EQ(now.settings.lookahead, 7);
  EXPECT_EQ(now.bytes_per_second, 5);
}

TEST(AllowanceTest, TellsATierOnlyWhatIsNew) {
  Allowance allowance(kUsual, kManyFiles, false);
  allowance.add_tiers(1000, std::nullopt);
  Share share;
  share.ram_bytes = 400;
  share.disk_bytes = 400;
  allowance.allow(share);

  const Allowance::InForce less = allowance.settle();
  const Allowance::InForce same = allowance.settle();
  share.ram_bytes = 5000;
  allowance.allow(share);
  const Allowance::InForce all = allowance.settle();

  ASSERT_TRUE(less.ram);
  EXPECT_EQ(less.ram->bound_bytes, 400);
  EXPECT_EQ(less.ram->before_bytes, 1000);
  EXPECT_FALSE(less.disk);
  EXPECT_FALSE(same.ram);
  ASSERT_TRUE(all.ram);
  EXPECT_EQ(all.ram->bound_bytes, 1000);
  EXPECT_EQ(all.ram->before_bytes, 400);
  EXPECT_EQ(all.ram->after_bytes, 1000);
}

}  // namespace
}  // namespace leat
