#include "leat/agent/agent.h"

#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "leat/agent/job_book.h"
#include "leat/agent/wire/unix_socket.h"
#include "leat/tune/sharing_simulator.h"

namespace leat {
namespace {

using ::testing::HasSubstr;

constexpr double kSamples = 1000;  // In the dataset of each job.

/// The counters of a job that does what its truth says.
class Rank {
 public:
  explicit Rank(const JobSpeed& truth) : truth_(truth) {}

  WireRates after_a_second(const Share& share) {
    const Grant grant{
        .threads = static_cast<double>(share.threads.value_or(8)),
        .in_flight = static_cast<double>(share.in_flight.value_or(128)),
        .bytes_per_second = share.bytes_per_second
                                ? static_cast<double>(*share.bytes_per_second)
                                : kUnbounded,
        .cache_bytes = static_cast<double>(share.ram_bytes.value_or(0))};
    rate_ = predict(truth_, grant).rate;
    const JobReport report = report_of(truth_, grant, rate_, 1);
    rates_.elapsed_seconds += 1;
    rates_.samples += report.samples;
    rates_.training_seconds += report.training_seconds;
    rates_.totals[&counters::kWaitSeconds] += report.wait_seconds;
    rates_.reads += report.reads;
    rates_.totals[&counters::kReadBytes] += report.read_bytes;
    rates_.read_seconds += report.read_seconds;
    rates_.tasks += report.tasks;
    rates_.busy_seconds += report.busy_seconds;
    rates_.totals[&counters::kRamHits] += report.cache_hits;
    rates_.totals[&counters::kCacheMisses] += report.cache_misses;
    rates_.threads = report.threads;
    rates_.in_flight = report.in_flight;
    if (truth_.saved_seconds > 0) {
      rates_.kept_bytes = truth_.dataset_bytes / kSamples;
      rates_.saved_seconds = truth_.saved_seconds;
      rates_.decoded_hits =
          rates_.decoded_hits.value_or(0) + report.decoded_hits;
    }
    return rates_;
  }
  double rate() const { return rate_; }
  void become(const JobSpeed& truth) { truth_ = truth; }

 private:
  JobSpeed truth_;
  WireRates rates_;
  double rate_ = 0;
};

WireRegistration named(const std::string& job) {
  return {.job = job,
          .name = job,
          .dataset = "s3://data",
          .threads = 8,
          .in_flight = 128,
          .dataset_samples = static_cast<std::uint64_t>(kSamples)};
}

/// Each rank reads as fast as it may meanwhile.
void pass_seconds(int from, int to, JobBook& book,
                  std::map<MemberId, Rank>& ranks,
                  std::map<MemberId, Share>& shares) {
  for (int second = from; second < to; ++second) {
    book.tick(second, second);
    for (const auto& [member, told] : book.take_shares()) {
      shares[member] = told.share;
    }
    for (auto& [member, rank] : ranks) {
      book.report(member, rank.after_a_second(shares[member]));
    }
  }
}

/// The final share of each member.
std::map<MemberId, Share> after_half_a_minute(JobBook& book,
                                              std::map<MemberId, Rank>& ranks) {
  std::map<MemberId, Share> shares;
  pass_seconds(0, 30, book, ranks, shares);
  return shares;
}

TEST(JobBookTest, RanksOfAJobShareItsShareAndJobsTheNode) {
  JobBook book({.threads = 8}, {});
  std::map<MemberId, Rank> ranks;
  // Two ranks of one heavy job, and a light one.
  for (const MemberId member : {1, 2}) {
    book.join(member, 0, 100 + static_cast<int>(member), named("heavy"), 0);
    ranks.emplace(member,
                  JobSpeed{.compute_ceiling = 300, .rate_per_thread = 100});
  }
  book.join(3, 0, 103, named("light"), 0);
  ranks.emplace(3, JobSpeed{.compute_ceiling = 100, .rate_per_thread = 100});

  std::map<MemberId, Share> shares = after_half_a_minute(book, ranks);

  EXPECT_GE(*shares[1].threads, 3u);
  EXPECT_GE(*shares[2].threads, 3u);
  EXPECT_LE(*shares[1].threads + *shares[2].threads + *shares[3].threads, 8u);
  EXPECT_EQ(ranks.at(1).rate() + ranks.at(2).rate(), 600);
  const NodeView view = book.view();
  ASSERT_EQ(view.jobs.size(), 2u);
  EXPECT_EQ(view.jobs[0].name, "heavy");
  EXPECT_EQ(view.jobs[0].local_ranks, 2u);
  EXPECT_NEAR(view.jobs[0].found_rate, 600, 1);
  EXPECT_NEAR(view.jobs[0].predicted_rate, 600, 1);
  EXPECT_EQ(view.jobs[0].bottleneck, "training");
  EXPECT_FALSE(view.decisions.empty());
  EXPECT_FALSE(view.history.empty());
}

TEST(JobBookTest, APointHasWhatWasForetoldBeforeItWasFound) {
  JobBook book({.threads = 8}, {});
  std::map<MemberId, Rank> ranks;
  book.join(1, 0, 101, named("a"), 0);
  ranks.emplace(1, JobSpeed{.rate_per_thread = 100});
  std::map<MemberId, Share> shares = after_half_a_minute(book, ranks);
  book.tick(30, 30);

  ranks.at(1).become({.rate_per_thread = 50});
  book.report(1, ranks.at(1).after_a_second(shares[1]));
  book.tick(31, 31);

  const JobPoint latest = book.view().history.back();
  EXPECT_NEAR(latest.predicted_rate, 800, 1);
  EXPECT_NEAR(latest.found_rate, 400, 1);
}

TEST(JobBookTest, ABucketsBandwidthIsOfTheJobsThatNameIt) {
  JobBook book({.threads = 8, .bucket_bytes_per_second = {1e6, 9e6}}, {},
               {"s3://narrow", "s3://wide"});
  std::map<MemberId, Rank> ranks;
  for (const MemberId member : {1, 2, 3}) {
    WireRegistration said = named(std::to_string(member));
    if (member < 3) said.buckets = {"s3://other", "s3://narrow"};
    book.join(member, 0, 100 + static_cast<int>(member), said, 0);
    ranks.emplace(member, JobSpeed{.compute_ceiling = 300,
                                   .rate_per_thread = 300,
                                   .reads_per_sample = 1,
                                   .read_bytes_per_sample = 1e4});
  }
  const std::map<MemberId, Share> shares = after_half_a_minute(book, ranks);

  EXPECT_NEAR(static_cast<double>(*shares.at(1).bytes_per_second) +
                  static_cast<double>(*shares.at(2).bytes_per_second),
              1e6, 2e4);
  EXPECT_FALSE(shares.at(3).bytes_per_second);
  const std::vector<LinkView> links = book.view().links;
  ASSERT_EQ(links.size(), 2u) << "all reads have no limit";
  EXPECT_EQ(links[0].bucket, "s3://narrow");
  EXPECT_EQ(links[0].bytes_per_second, 1e6);
  EXPECT_NEAR(links[0].read_bytes_per_second, 1e6, 5e4);
  EXPECT_EQ(links[1].bucket, "s3://wide");
  EXPECT_EQ(links[1].read_bytes_per_second, 0);
}

TEST(JobBookTest, APointHasTheShareThatHeldThen) {
  JobBook book({.threads = 8, .bytes_per_second = 1e6, .cache_bytes = 1000},
               {});
  std::map<MemberId, Rank> ranks;
  for (const MemberId member : {1, 2}) {
    WireRegistration said = named(member == 1 ? "a" : "b");
    said.ram_bytes = 800;
    book.join(member, 0, 100 + static_cast<int>(member), said, 0);
    ranks.emplace(member, JobSpeed{.compute_ceiling = 300,
                                   .rate_per_thread = 100,
                                   .reads_per_sample = 1,
                                   .read_bytes_per_sample = 1e4});
  }
  std::map<MemberId, Share> shares = after_half_a_minute(book, ranks);
  book.tick(30, 30);

  double ram = 0;
  for (const JobView& job : book.view().jobs) {
    const auto history = book.view().history;
    const auto last = std::ranges::find(history.rbegin(), history.rend(),
                                        job.id, &JobPoint::job);
    ASSERT_NE(last, history.rend());
    ASSERT_TRUE(last->ram_bytes && last->bytes_per_second);
    EXPECT_EQ(*last->ram_bytes, static_cast<double>(*job.share.ram_bytes));
    EXPECT_GT(*last->bytes_per_second, 0);
    EXPECT_FALSE(last->disk_bytes);
    ram += *last->ram_bytes;
  }
  EXPECT_GT(ram, 0);
  EXPECT_LE(ram, 1000);
}

TEST(JobBookTest, CacheGoesToWhomItSavesDecoding) {
  JobBook book({.threads = 8, .cache_bytes = 1e6}, {});
  std::map<MemberId, Rank> ranks;
  JobSpeed truth{.compute_ceiling = 5000,
                 .rate_per_thread = 100,
                 .reads_per_sample = 1,
                 .dataset_bytes = 1e6};
  for (const MemberId member : {1, 2}) {
    WireRegistration said = named(member == 1 ? "encoded" : "decoded");
    said.ram_bytes = 1000000;
    book.join(member, 0, 100 + static_cast<int>(member), said, 0);
    if (member == 2) truth.saved_seconds = 0.008;
    ranks.emplace(member, truth);
  }

  std::map<MemberId, Share> shares = after_half_a_minute(book, ranks);

  EXPECT_GT(*shares[2].ram_bytes, 990000u);
  EXPECT_LT(*shares[1].ram_bytes, 10000u);
  const NodeView view = book.view();
  for (const JobView& job : view.jobs) {
    EXPECT_NEAR(job.predicted_rate, job.found_rate, 0.02 * job.found_rate);
  }
}

TEST(JobBookTest, TheJobThatIsSoonerDoneGoesFirst) {
  JobBook book({.threads = 8}, {});
  std::map<MemberId, Rank> ranks;
  for (const MemberId member : {1, 2}) {
    WireRegistration said = named(member == 1 ? "long" : "short");
    said.epochs = member == 1 ? 100000 : 100;
    book.join(member, 0, static_cast<int>(member), said, 0);
    ranks.emplace(member, JobSpeed{.rate_per_thread = 100});
  }

  std::map<MemberId, Share> shares = after_half_a_minute(book, ranks);

  EXPECT_EQ(*shares[2].threads, 6u);
  EXPECT_EQ(*shares[1].threads, 2u);  // The floor: half of an even share.
}

TEST(JobBookTest, ShowsWhereAJobWaitsAndWhatItsCacheAnswers) {
  JobBook book({.threads = 8}, {});
  for (const MemberId member : {1, 2}) {
    book.join(member, 0, static_cast<int>(member), named("a"), 0);
    WireRates rates{.elapsed_seconds = 1, .stalls = {{"storage", 5}}};
    book.report(member, rates);
  }
  book.tick(0, 0);
  for (const MemberId member : {1, 2}) {
    WireRates rates{
        .elapsed_seconds = 5,
        .samples = 100,
        .reads = 40,
        .totals = {{&counters::kWaitSeconds, 3},
                   {&counters::kReadBytes, 4000},
                   {&counters::kRamHits, 10},
                   {&counters::kDiskHits, 20},
                   {&counters::kPeerHits, 30},
                   {&counters::kCacheMisses, 40},
                   {&counters::kRamBytes, 1000},
                   {&counters::kDiskBytes, 2000},
                   {&counters::kStalledDollars, 0.5},
                   {&counters::kLists, 2}},
        .stalls = {{"storage", 6}, {"decode", member == 1 ? 4 : 0}}};
    if (member == 1) {
      rates.totals[&counters::kGets] = 43;
      rates.totals[&counters::kRequestDollars] = 0.25;
    }
    book.report(member, rates);
  }
  book.tick(1, 1);

  const NodeView view = book.view();
  ASSERT_EQ(view.jobs.size(), 1u);
  const JobView& job = view.jobs[0];
  EXPECT_NEAR(job.wait_fraction, 0.75, 1e-9);
  // Out of four seconds, on two ranks.
  EXPECT_NEAR(job.stalls.at("storage"), 0.25, 1e-9);
  EXPECT_NEAR(job.stalls.at("decode"), 0.5, 1e-9);
  const JobTotals expected = {
      {&counters::kRamHits, 20},
      {&counters::kDiskHits, 40},
      {&counters::kPeerHits, 60},
      {&counters::kCacheMisses, 80},
      {&counters::kRamBytes, 2000},
      {&counters::kDiskBytes, 4000},
      {&counters::kGets, 83},  // One rank knows those under way, too.
      {&counters::kLists, 4},
      {&counters::kReadBytes, 8000},
      {&counters::kRequestDollars, 0.25},  // One rank knows it.
      {&counters::kWaitSeconds, 6},
      {&counters::kStalledDollars, 1.0}};
  EXPECT_EQ(job.totals, expected);
}

TEST(JobBookTest, CountersOfAJobDoNotFallWhenARankLeaves) {
  JobBook book({.threads = 8}, {});
  WireRates rates{.reads = 40,
                  .totals = {{&counters::kReadBytes, 4000},
                             {&counters::kRamBytes, 1000},
                             {&counters::kRequestDollars, 0.25}}};
  const auto join = [&](MemberId member, int pid, std::uint32_t rank) {
    WireRegistration who = named("a");
    who.rank = rank;
    book.join(member, 0, pid, who, 0);
  };
  for (const MemberId member : {1, 2}) {
    join(member, 100 + static_cast<int>(member), member == 2);
    book.report(member, rates);
  }
  const auto totals = [&] { return book.view().jobs.at(0).totals; };
  JobTotals expected = {{&counters::kGets, 80},
                        {&counters::kReadBytes, 8000},
                        {&counters::kRamBytes, 2000},
                        {&counters::kRequestDollars, 0.5}};
  ASSERT_EQ(totals(), expected);

  book.leave(1);
  expected[&counters::kRamBytes] = 1000;  // It holds no cache any more.
  EXPECT_EQ(totals(), expected);

  // The same process, whose connection had ended.
  join(3, 101, 0);
  EXPECT_EQ(totals(), expected);
  book.report(3, rates);
  expected[&counters::kRamBytes] = 2000;
  EXPECT_EQ(totals(), expected);
}

TEST(JobBookTest, CountersCountOnHoweverManyRanksHaveLeft) {
  JobBook book({.threads = 8}, {});
  constexpr int kRanks = 200;
  book.join(1, 0, 1, named("a"), 0);
  for (int i = 0; i < kRanks; ++i) {
    const auto member = static_cast<MemberId>(2 + i);
    book.join(member, 0, 100 + i, named("a"), 0);
    book.report(member, {.reads = 1});
    book.leave(member);
  }

  EXPECT_EQ(total_of(book.view().jobs.at(0).totals, counters::kGets), kRanks);
}

TEST(JobBookTest, CachesAreDealtOutAmongThoseThatHaveTheTier) {
  JobBook book({.threads = 8, .cache_bytes = 1000 + 600, .disk_bytes = 600},
               {});
  WireRegistration both = named("both");
  both.ram_bytes = 400;  // The bytes of each of two ranks.
  both.disk_bytes = 4000;
  WireRegistration ram = named("ram");
  ram.ram_bytes = 5000;
  book.join(1, 0, 1, both, 0);
  book.join(2, 0, 2, both, 0);
  book.join(3, 0, 3, ram, 0);
  book.join(4, 0, 4, named("none"), 0);
  book.tick(0, 0);
  const auto shares = book.take_shares();

  EXPECT_EQ(shares.at(1).share.ram_bytes, shares.at(2).share.ram_bytes);
  EXPECT_EQ(shares.at(1).share.disk_bytes, 300u);
  EXPECT_FALSE(shares.at(3).share.disk_bytes);
  EXPECT_FALSE(shares.at(4).share.ram_bytes);
  EXPECT_LE(2 * *shares.at(1).share.ram_bytes + *shares.at(3).share.ram_bytes,
            1000u);
  EXPECT_GE(*shares.at(3).share.ram_bytes, 700u);  // Half of all, and no disk.

  book.leave(1);
  book.leave(2);
  book.leave(4);
  book.tick(20, 20);
  EXPECT_EQ(book.take_shares().at(3).share.ram_bytes, 1000u);
  const NodeView view = book.view();
  EXPECT_EQ(view.jobs[0].share.ram_bytes, 1000u);
  EXPECT_EQ(view.decisions.back().decision.setting, Setting::kRamBytes);
}

TEST(JobBookTest, OfAJobWithRanksElsewhereThePaceIsToldAndHeeded) {
  JobBook book({.threads = 8}, {});
  std::map<MemberId, Rank> ranks;
  for (const MemberId member : {1, 2, 3}) {
    WireRegistration who = named(member == 3 ? "here" : "wide");
    who.world_size = member == 3 ? 1 : 4;
    book.join(member, 0, static_cast<int>(member), who, 0);
    ranks.emplace(member,
                  JobSpeed{.compute_ceiling = 400, .rate_per_thread = 100});
  }
  std::map<MemberId, Share> shares;
  std::map<MemberId, Pace> paces;
  const auto run = [&](int from, const std::optional<Pace>& elsewhere) {
    for (int second = from; second < from + 30; ++second) {
      book.tick(second, second);
      for (const auto& [member, told] : book.take_shares()) {
        shares[member] = told.share;
        if (told.pace) paces[member] = *told.pace;
      }
      for (auto& [member, rank] : ranks) {
        WireRates rates = rank.after_a_second(shares[member]);
        if (member != 3) rates.elsewhere = elsewhere;
        book.report(member, rates);
      }
    }
  };

  run(0, {});
  EXPECT_FALSE(paces.contains(3)) << "it has no ranks elsewhere";
  const auto threads = static_cast<double>(*shares[1].threads);
  EXPECT_GE(threads, 2);
  EXPECT_NEAR(paces.at(1).reached, 100 * threads, 1) << "of one rank of two";
  EXPECT_EQ(paces.at(1), paces.at(2));

  run(30, Pace{.offered = 100, .reached = 100, .ceiling = 400});
  EXPECT_LE(*shares[1].threads + *shares[2].threads, 4u);
  EXPECT_GE(*shares[3].threads, 4u);
  EXPECT_GE(paces.at(1).offered, 200)
      << "what it would give, not what it gives";
}

TEST(JobBookTest, WithoutAPoolEachKeepsWhatItsUserGave) {
  JobBook book({.threads = 8}, {});
  WireRegistration said = named("a");
  said.ram_bytes = said.disk_bytes = 400;
  book.join(1, 0, 1, said, 0);
  book.tick(0, 0);

  EXPECT_FALSE(book.take_shares().at(1).share.ram_bytes);
  EXPECT_FALSE(book.view().jobs[0].share.disk_bytes);
}

TEST(JobBookTest, NobodyJoinsAJobOfAnotherUser) {
  JobBook book({.threads = 8}, {});
  book.join(1, 1000, 1, named("a"), 0);
  book.join(2, 1001, 2, named("a"), 0);

  EXPECT_EQ(book.view().jobs.size(), 2u);
}

TEST(JobBookTest, WhoLeavesIsForgottenAndItsShareIsFree) {
  JobBook book({.threads = 8}, {});
  book.join(1, 0, 1, named("a"), 0);
  book.join(2, 0, 2, named("b"), 0);
  book.tick(0, 0);
  EXPECT_EQ(book.take_shares().at(1).share.threads, 4u);

  book.leave(2);
  book.tick(1, 1);
  book.join(3, 0, 3, named("c"), 0);
  book.tick(2, 2);

  EXPECT_EQ(book.view().jobs.size(), 2u);
  EXPECT_EQ(book.take_shares().at(3).share.threads, 4u);
}

TEST(JobBookTest, AJobThatFallsSilentLendsItsShareUntilItSpeaksAgain) {
  JobBook book({.threads = 8, .in_flight = 32}, {});
  std::map<MemberId, Rank> ranks;
  for (const MemberId member : {1, 2}) {
    book.join(member, 0, 100 + static_cast<int>(member),
              named(std::to_string(member)), 0);
    ranks.emplace(member, JobSpeed{.rate_per_thread = 1000,
                                   .reads_per_sample = 1,
                                   .read_bytes_per_sample = 1e4,
                                   .latency_seconds = 0.1});
  }
  std::map<MemberId, Share> shares = after_half_a_minute(book, ranks);
  ASSERT_LT(*shares[1].in_flight, 32u);
  ASSERT_GT(book.view().jobs[1].found_rate, 0);
  const double seen = book.view().history.back().time_seconds;

  auto stopped = ranks.extract(2);
  pass_seconds(30, 45, book, ranks, shares);

  EXPECT_EQ(*shares[1].in_flight, 32u);
  EXPECT_EQ(book.view().jobs[1].found_rate, 0);
  const std::vector<JobPoint> history = book.view().history;
  const auto last = std::ranges::find(history.rbegin(), history.rend(),
                                      book.view().jobs[1].id, &JobPoint::job);
  ASSERT_NE(last, history.rend());
  EXPECT_GT(last->time_seconds, seen) << "the page shows that it stands still";
  EXPECT_EQ(last->found_rate, 0);

  ranks.insert(std::move(stopped));
  pass_seconds(45, 47, book, ranks, shares);
  EXPECT_EQ(book.view().jobs[1].found_rate, 0)
      << "its first report is of the silence, too";
  pass_seconds(47, 60, book, ranks, shares);
  EXPECT_GT(book.view().jobs[1].found_rate, 0);
  EXPECT_LE(*shares[1].in_flight + *shares[2].in_flight, 32u);
}

TEST(JobBookTest, ARankThatFallsSilentDoesNotHideTheOthers) {
  JobBook book({.threads = 8}, {});
  std::map<MemberId, Rank> ranks;
  for (const MemberId member : {1, 2}) {
    book.join(member, 0, 100 + static_cast<int>(member), named("a"), 0);
    ranks.emplace(member,
                  JobSpeed{.compute_ceiling = 300, .rate_per_thread = 100});
  }
  std::map<MemberId, Share> shares = after_half_a_minute(book, ranks);
  book.tick(30, 30);
  ASSERT_NEAR(book.view().jobs[0].found_rate, 600, 1);

  ranks.erase(2);
  pass_seconds(31, 41, book, ranks, shares);
  book.tick(41, 41);

  EXPECT_NEAR(book.view().jobs[0].found_rate, ranks.at(1).rate(), 1);
}

TEST(JobBookTest, ARankThatNeverReportsDoesNotHideTheOthers) {
  JobBook book({.threads = 8}, {});
  std::map<MemberId, Rank> ranks;
  for (const MemberId member : {1, 2}) {
    book.join(member, 0, 100 + static_cast<int>(member), named("a"), 0);
  }
  ranks.emplace(1, JobSpeed{.compute_ceiling = 300, .rate_per_thread = 100});

  after_half_a_minute(book, ranks);
  book.tick(30, 30);

  EXPECT_GE(ranks.at(1).rate(), 100);
  EXPECT_NEAR(book.view().jobs[0].found_rate, ranks.at(1).rate(), 1);
}

TEST(JobBookTest, NewPointsAreLaterThoughTheClockWentBack) {
  JobBook book({.threads = 8}, {});
  std::map<MemberId, Rank> ranks;
  for (const MemberId member : {1, 2}) {
    book.join(member, 0, 100, named(std::to_string(member)), 0);
    ranks.emplace(member,
                  JobSpeed{.compute_ceiling = 100, .rate_per_thread = 100});
  }
  std::map<MemberId, Share> shares = after_half_a_minute(book, ranks);
  const std::vector<JobPoint> before = book.view().history;
  double latest = before.back().time_seconds;

  for (int second = 30; second < 33; ++second) {
    book.tick(second, second - 20);
    for (auto& [member, rank] : ranks) {
      book.report(member, rank.after_a_second(shares[member]));
    }
    const std::vector<JobPoint> all = book.view().history;
    const JobPoint& last = all.back();
    const JobPoint& other = all.at(all.size() - 2);
    EXPECT_GE(last.time_seconds, latest + 0.001);
    EXPECT_LT(last.time_seconds, latest + 0.002);
    EXPECT_NE(last.job, other.job);
    EXPECT_EQ(last.time_seconds, other.time_seconds) << "of one moment";
    latest = last.time_seconds;
  }
  EXPECT_EQ(book.view().history.size(), before.size() + 6);

  book.tick(33, 33);
  EXPECT_EQ(book.view().history.back().time_seconds, 33);
}

TEST(JobBookTest, WhatHappenedIsKeptForMinutesHoweverManyTheJobs) {
  constexpr int kJobs = 30;
  constexpr int kSeconds = 700;
  JobBook book({.threads = 64}, {});
  std::map<MemberId, Rank> ranks;
  for (MemberId member = 1; member <= kJobs; ++member) {
    book.join(member, 0, 100, named(std::to_string(member)), 0);
    ranks.emplace(member,
                  JobSpeed{.compute_ceiling = 100, .rate_per_thread = 100});
  }
  std::map<MemberId, Share> shares;
  for (int second = 0; second < kSeconds; ++second) {
    book.tick(second, second);
    for (const auto& [member, told] : book.take_shares()) {
      shares[member] = told.share;
    }
    for (auto& [member, rank] : ranks) {
      book.report(member, rank.after_a_second(shares[member]));
    }
  }

  const std::vector<JobPoint> points = book.view().history;
  ASSERT_FALSE(points.empty());
  EXPECT_LE(points.front().time_seconds, kSeconds - JobBook::kKeptSeconds);
  EXPECT_GE(points.front().time_seconds, kSeconds - JobBook::kKeptSeconds - 2);
}

class AgentTest : public ::testing::Test {
 protected:
  AgentTest() {
    std::string name = "/tmp/leat-agent-XXXXXX";
    folder_ = ::mkdtemp(name.data());
    options_.socket = folder_ + "/agent.sock";
    options_.node.threads = 8;
    options_.heeds_other_programs = false;
  }
  ~AgentTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<Agent> agent() {
    auto opened = open_agent(options_);
    EXPECT_TRUE(opened) << opened.error().message();
    return std::move(*opened);
  }

  std::string folder_;
  AgentOptions options_;
};

/// The next line of the other side, or "" when it hangs up.
std::string hear(int socket, LineReader& reader) {
  while (true) {
    if (auto line = reader.next()) return *line;
    pollfd source{.fd = socket, .events = POLLIN};
    if (::poll(&source, 1, 60000) <= 0) return "nothing";
    std::array<char, 4096> bytes;
    const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), 0);
    if (got <= 0) return "";
    EXPECT_TRUE(reader.add({bytes.data(), static_cast<std::size_t>(got)}));
  }
}

void say(int socket, const std::string& text) {
  ASSERT_EQ(::send(socket, text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
}

TEST_F(AgentTest, TellsWhoRegistersItsShare) {
  const auto open = agent();
  auto socket = connect_to(options_.socket);
  ASSERT_TRUE(socket) << socket.error().message();

  say(socket->get(), line_of(named("a")));

  LineReader reader;
  const auto said = parse_agent_line(hear(socket->get(), reader));
  ASSERT_TRUE(said) << said.error().message();
  ASSERT_TRUE(said->share);
  EXPECT_GE(*said->share->threads, 1u);
  EXPECT_EQ(open->view().jobs.size(), 1u);
  EXPECT_EQ(open->view().jobs[0].pids, std::vector<std::int32_t>{::getpid()});
}

/// The next message that is no share.
AgentMessage next_but_shares(int socket, LineReader& reader) {
  while (true) {
    const std::string line = hear(socket, reader);
    const auto said = parse_agent_line(line);
    EXPECT_TRUE(said) << line;
    if (!said || !said->share) return said ? *said : AgentMessage{};
  }
}

TEST_F(AgentTest, AsksAJobForItsTraceWhileSomebodyLooks) {
  const auto open = agent();
  auto socket = connect_to(options_.socket);
  ASSERT_TRUE(socket);
  EXPECT_FALSE(open->trace("1")) << "nobody is here yet";
  const JobTrace told{.begin_seconds = 5,
                      .steps = {{.epoch = 1, .step = 2, .size = 3}}};
  // Nobody has asked: it is passed over.
  say(socket->get(), line_of(named("a")) + line_of(told));
  LineReader reader;
  ASSERT_TRUE(parse_agent_line(hear(socket->get(), reader))->share);
  const std::string id = open->view().jobs.at(0).id;

  ASSERT_TRUE(open->trace(id));
  EXPECT_TRUE(open->trace(id)->steps.empty());
  EXPECT_TRUE(next_but_shares(socket->get(), reader).wants_trace);
  say(socket->get(), line_of(told));

  for (int i = 0; i < 6000 && open->trace(id)->steps.empty(); ++i) {
    ::usleep(10'000);
  }
  EXPECT_EQ(*open->trace(id), told);
  EXPECT_TRUE(next_but_shares(socket->get(), reader).wants_trace) << "again";
  EXPECT_FALSE(open->trace("99"));
}

TEST_F(AgentTest, TheSocketIsPrivate) {
  const auto open = agent();
  struct stat is {};
  ASSERT_EQ(::stat(options_.socket.c_str(), &is), 0);
  EXPECT_EQ(is.st_mode & 0777, 0600u);
}

TEST_F(AgentTest, MembersOfItsGroupMayCome) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "needs root: it becomes another user, of another group";
  constexpr gid_t kGroup = 54321;
  constexpr uid_t kUser = 54322;
  std::filesystem::permissions(folder_, std::filesystem::perms(0755));
  options_.socket = folder_ + "/made/agent.sock";
  options_.group = kGroup;
  const auto open = agent();
  // The agent's answer to a member of `group`: 0 a share, 1 nothing, 2 an
  // error.
  const auto answer = [&](gid_t group) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      if (::setgroups(0, nullptr) != 0 ||
          ::setresgid(group, group, group) != 0 ||
          ::setresuid(kUser, kUser, kUser) != 0) {
        ::_exit(9);
      }
      const auto socket = connect_to(options_.socket);
      if (!socket) ::_exit(1);
      say(socket->get(), line_of(named("a")));
      LineReader reader;
      const std::string line = hear(socket->get(), reader);
      ::_exit(line.find("threads") != std::string::npos ? 0 : 2);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
  };

  EXPECT_EQ(answer(kGroup), 0);
  EXPECT_EQ(answer(kGroup + 1), 1) << "cannot even enter the folder";
}

TEST_F(AgentTest, AGroupThatCannotEnterItsFolderIsAnError) {
  options_.group = ::getegid() + 1;
  const auto opened = open_agent(options_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(opened.error().message(), HasSubstr("chmod g+x"));
}

TEST_F(AgentTest, HangsUpOnNonsenseAndServesOthers) {
  const auto open = agent();
  const std::vector<std::string> nonsense = {
      "GET / HTTP/1.1\r\n\r\n", "{}\n", line_of(WireRates{}),
      line_of(named("a")) + line_of(named("b")), std::string(20000, '[')};
  for (const std::string& bytes : nonsense) {
    auto socket = connect_to(options_.socket);
    ASSERT_TRUE(socket);
    say(socket->get(), bytes);
    LineReader reader;
    std::string last;
    for (std::string line = hear(socket->get(), reader); !line.empty();
         line = hear(socket->get(), reader)) {
      last = line;
    }
    EXPECT_THAT(last, HasSubstr("error")) << bytes.substr(0, 40);
  }

  auto socket = connect_to(options_.socket);
  say(socket->get(), line_of(named("c")));
  LineReader reader;
  EXPECT_THAT(hear(socket->get(), reader), HasSubstr("share"));
  EXPECT_EQ(open->view().jobs.size(), 1u);
}

TEST_F(AgentTest, OneUserCannotTakeAllConnections) {
  const auto open = agent();
  std::vector<OwnedFd> idle;
  for (std::size_t i = 0; i < Agent::kMostOfAUser; ++i) {
    auto socket = connect_to(options_.socket);
    while (!socket) socket = connect_to(options_.socket);  // Its queue is full.
    idle.push_back(*std::move(socket));
  }

  auto one_more = connect_to(options_.socket);
  while (!one_more) one_more = connect_to(options_.socket);

  LineReader reader;
  EXPECT_THAT(hear(one_more->get(), reader), HasSubstr("as many connections"));
  idle.pop_back();
  const auto may_come = [&] {
    const auto socket = connect_to(options_.socket);
    if (!socket) return false;
    const std::string line = line_of(named("a"));
    (void)::send(socket->get(), line.data(), line.size(), MSG_NOSIGNAL);
    LineReader its;
    const auto said = parse_agent_line(hear(socket->get(), its));
    return said && said->share;
  };
  while (!may_come()) std::this_thread::yield();
}

TEST_F(AgentTest, ThereIsOneAgentAtAPath) {
  const auto open = agent();
  const auto second = open_agent(options_);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message(), HasSubstr("another agent has it"));
  EXPECT_TRUE(connect_to(options_.socket));
}

TEST_F(AgentTest, ThereIsOneAgentAtAPathThoughACleanerTookItsLock) {
  const auto open = agent();
  ASSERT_TRUE(std::filesystem::remove(options_.socket + ".lock"));

  const auto second = open_agent(options_);

  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), ErrorCode::kUnavailable);
  EXPECT_THAT(second.error().message(), HasSubstr("another agent has it"));
  EXPECT_TRUE(connect_to(options_.socket));
}

TEST_F(AgentTest, LeavesTheSocketOfItsSuccessor) {
  auto first = agent();
  ASSERT_TRUE(std::filesystem::remove(options_.socket + ".lock"));
  ASSERT_TRUE(std::filesystem::remove(options_.socket));
  const auto second = agent();

  first.reset();

  EXPECT_TRUE(connect_to(options_.socket));
}

TEST_F(AgentTest, TakesItsSocketWithIt) {
  agent().reset();
  EXPECT_FALSE(std::filesystem::exists(options_.socket));
}

TEST_F(AgentTest, LeavesAFileThatIsNoSocket) {
  std::ofstream(options_.socket) << "mine";
  const auto open = open_agent(options_);
  ASSERT_FALSE(open);
  EXPECT_EQ(open.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(std::filesystem::exists(options_.socket));
}

TEST_F(AgentTest, WhatAKilledAgentLeavesIsReplacedEachTime) {
  std::mt19937 random(7);
  for (int i = 0; i < 20; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto open = open_agent(options_);
      if (!open) ::_exit(1);
      while (true) ::pause();
    }
    ASSERT_GT(child, 0);
    // Killed anywhere from before its socket to after.
    ::usleep(random() % 3000);
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it did not get its socket";
  }
  const auto open = agent();
  EXPECT_TRUE(connect_to(options_.socket));
}

}  // namespace
}  // namespace leat
