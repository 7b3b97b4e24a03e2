// Claims, turns and boards. Locks are of open files, so two of each in one
// process behave as two processes do; for a test of a death, one is a process.

#include "leat/cache/fetch_turns.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <numeric>
#include <set>
#include <string>

#include "leat/cache/job_board.h"

namespace leat {
namespace {

constexpr RecordKey kOne{.high = 1, .low = 1000};
constexpr RecordKey kTwo{.high = 2, .low = 2000};

class TempFolderTest : public ::testing::Test {
 protected:
  TempFolderTest() {
    std::string name = ::testing::TempDir() + "leat-turns-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~TempFolderTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<RecordClaims> claims() const {
    auto made = RecordClaims::open(folder_);
    EXPECT_TRUE(made) << made.error().message();
    return *std::move(made);
  }
  std::unique_ptr<JobBoard> board(std::uint64_t dataset,
                                  std::uint64_t samples = 20) const {
    auto made = JobBoard::open(folder_, {.high = 0, .low = dataset}, samples);
    EXPECT_TRUE(made) << made.error().message();
    return *std::move(made);
  }
  bool is_empty() const { return std::filesystem::is_empty(folder_); }

  /// A process that holds a claim on kOne until it is killed.
  pid_t claim_in_child() const {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      const auto mine = RecordClaims::open(folder_);
      const char ok = mine && (*mine)->try_claim(kOne) ? 'y' : 'n';
      (void)!::write(ready[1], &ok, 1);
      while (true) ::pause();
    }
    char ok = 0;
    EXPECT_EQ(::read(ready[0], &ok, 1), 1);
    EXPECT_EQ(ok, 'y');
    ::close(ready[0]);
    ::close(ready[1]);
    return child;
  }
  static void kill(pid_t child) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }

  std::string folder_;
};

using RecordClaimsTest = TempFolderTest;

TEST_F(RecordClaimsTest, OneHasARecordAndTheOthersDoNot) {
  const auto a = claims();
  const auto b = claims();

  EXPECT_TRUE(a->try_claim(kOne));
  EXPECT_FALSE(b->try_claim(kOne));
  EXPECT_TRUE(b->try_claim(kTwo));
  b->release(kOne);  // Not its own.
  EXPECT_FALSE(b->try_claim(kOne));
  EXPECT_TRUE(b->is_others(kOne));
  EXPECT_FALSE(b->is_others(kTwo));  // Its own.
  a->release(kOne);
  EXPECT_FALSE(b->is_others(kOne));
  EXPECT_TRUE(b->try_claim(kOne));
}

TEST_F(RecordClaimsTest, GoWithTheProcessThatIsKilled) {
  const auto mine = claims();
  const pid_t child = claim_in_child();
  EXPECT_FALSE(mine->try_claim(kOne));

  kill(child);

  EXPECT_TRUE(mine->try_claim(kOne));
}

TEST_F(RecordClaimsTest, AnnouncementsAreHeardByAll) {
  const auto a = claims();
  const auto b = claims();
  const std::uint64_t before = b->announcements();

  a->announce();

  EXPECT_NE(b->announcements(), before);
}

TEST_F(RecordClaimsTest, TheLastOneLeavesNothing) {
  auto a = claims();
  auto b = claims();
  a.reset();
  EXPECT_FALSE(is_empty());
  EXPECT_TRUE(b->try_claim(kOne));  // The file is the one that all have.
  EXPECT_FALSE(claims()->try_claim(kOne));
  b.reset();
  EXPECT_TRUE(is_empty());
}

/// Tiers that hold what is put into them.
class FetchTurnsTest : public TempFolderTest {
 protected:
  std::unique_ptr<FetchTurns> turns(
      Nanoseconds patience = std::chrono::hours(1)) {
    return std::make_unique<FetchTurns>(
        claims(),
        SharedTiers{.see_others = [this](bool) { ++looks_; },
                    .is_there =
                        [this](const RecordKey& key) {
                          const MutexLock lock(mutex_);
                          return there_.contains(key);
                        }},
        FetchTurns::Options{.patience = patience});
  }
  void put(const RecordKey& key) {
    const MutexLock lock(mutex_);
    there_.insert(key);
  }
  static std::future<bool> ask(FetchTurns& turns, const RecordKey& key,
                               std::stop_token stop = {}) {
    auto answer = std::make_shared<std::promise<bool>>();
    turns.ask(key, std::move(stop),
              [answer](bool is_there) { answer->set_value(is_there); });
    return answer->get_future();
  }
  static bool is_open(const std::future<bool>& answer) {
    return answer.wait_for(std::chrono::seconds(0)) !=
           std::future_status::ready;
  }

  /// Waits until the tiers have been looked at again, twice, or it is decided.
  void wait_for_looks(const std::future<bool>& waiting) const {
    const int before = looks_;
    while (looks_ < before + 3 && is_open(waiting)) std::this_thread::yield();
  }

  Mutex mutex_;
  std::set<RecordKey> there_ LEAT_GUARDED_BY(mutex_);
  std::atomic<int> looks_ = 0;
};

TEST_F(FetchTurnsTest, TheFirstBringsItAndTheOthersWaitUntilItIsThere) {
  const auto a = turns();
  const auto b = turns();
  EXPECT_FALSE(ask(*a, kOne).get());
  auto waiting = ask(*b, kOne);
  wait_for_looks(waiting);
  EXPECT_TRUE(is_open(waiting));

  put(kOne);
  a->end(kOne);

  EXPECT_TRUE(waiting.get());
  EXPECT_EQ(a->held() + b->held(), 0u);
}

TEST_F(FetchTurnsTest, WhatIsThereNobodyBrings) {
  const auto a = turns();
  put(kOne);

  EXPECT_TRUE(ask(*a, kOne).get());
  EXPECT_EQ(a->held(), 0u);
}

TEST_F(FetchTurnsTest, WhatWasNotKeptTheNextOneBrings) {
  const auto a = turns();
  const auto b = turns();
  EXPECT_FALSE(ask(*a, kOne).get());
  auto waiting = ask(*b, kOne);

  a->end(kOne);

  EXPECT_FALSE(waiting.get());
  EXPECT_EQ(b->held(), 1u);
}

TEST_F(FetchTurnsTest, OneOfTheSameProcessWaitsToo) {
  const auto a = turns();
  EXPECT_FALSE(ask(*a, kOne).get());
  auto waiting = ask(*a, kOne);
  wait_for_looks(waiting);
  EXPECT_TRUE(is_open(waiting));

  put(kOne);
  a->end(kOne);

  EXPECT_TRUE(waiting.get());
}

TEST_F(FetchTurnsTest, AKilledFetcherKeepsNobodyWaiting) {
  const pid_t child = claim_in_child();
  const auto a = turns();
  auto waiting = ask(*a, kOne);
  wait_for_looks(waiting);
  EXPECT_TRUE(is_open(waiting));

  kill(child);

  EXPECT_FALSE(waiting.get());
  EXPECT_EQ(a->held(), 1u);
}

TEST_F(FetchTurnsTest, AFetcherThatDoesNothingIsWaitedForOnlySoLong) {
  const pid_t child = claim_in_child();  // As one that was stopped.
  const auto a = turns(std::chrono::milliseconds(30));

  EXPECT_FALSE(ask(*a, kOne).get());
  EXPECT_EQ(a->held(), 0u);  // It is still the other's.
  kill(child);
}

TEST_F(FetchTurnsTest, AStoppedReadWaitsNoLonger) {
  const auto a = turns();
  const auto b = turns();
  EXPECT_FALSE(ask(*a, kOne).get());
  std::stop_source stop;
  auto waiting = ask(*b, kOne, stop.get_token());

  stop.request_stop();

  EXPECT_FALSE(waiting.get());
  EXPECT_EQ(b->held(), 0u);
}

TEST_F(FetchTurnsTest, TheEndDecidesWhatIsOpen) {
  const auto a = turns();
  auto b = turns();
  EXPECT_FALSE(ask(*a, kOne).get());
  auto waiting = ask(*b, kOne);
  b.reset();
  EXPECT_FALSE(waiting.get());
}

using JobBoardTest = TempFolderTest;

/// Turns of as many samples, in order.
std::vector<ReadTurn> in_order(std::size_t samples) {
  std::vector<ReadTurn> turns(samples);
  std::iota(turns.begin(), turns.end(), 1);
  return turns;
}

TEST_F(JobBoardTest, SaysInHowManyReadsAnotherComesToASample) {
  const auto a = board(7);
  const auto b = board(7);
  std::vector<ReadTurn> turns = in_order(20);
  turns[3] = 0;
  b->begin_epoch({.epoch = 1, .turns = turns});
  a->look();

  EXPECT_EQ(a->others(), 1u);
  EXPECT_FALSE(a->wanted({3}));
  EXPECT_FALSE(a->wanted({20}));
  ASSERT_TRUE(a->wanted({5}));
  EXPECT_EQ(a->wanted({5})->turns, 5u);
  EXPECT_EQ(a->wanted({5})->jobs, 1u);

  b->used(1, {0}, 24);   // In the next epoch the fourth.
  b->used(0, {5}, 0);    // Belongs to an epoch that is over.
  b->used(1, {900}, 0);  // No such sample.

  EXPECT_EQ(a->wanted({5})->turns, 4u);
  EXPECT_EQ(a->wanted({0})->turns, 22u);
  EXPECT_EQ(a->wanted({0})->jobs, 0u);  // Not in the running one.
}

TEST_F(JobBoardTest, RanksReadBesideEachOther) {
  const auto a = board(7);
  const auto b = board(7);
  b->begin_epoch({.turns = in_order(20), .begin = 4, .ranks = 2});
  a->look();
  EXPECT_EQ(a->wanted({10})->turns, 6u);

  b->used(0, {4}, 0);

  EXPECT_EQ(a->wanted({10})->turns, 4u);
}

TEST_F(JobBoardTest, TheFirstOfAllOthersCounts) {
  const auto a = board(7);
  const auto b = board(7);
  const auto c = board(7);
  const auto stranger = board(8);
  const auto shorter = board(7, 10);
  b->begin_epoch({});
  c->begin_epoch({.turns = {0, 9}});

  a->look();

  EXPECT_EQ(a->others(), 2u);
  EXPECT_FALSE(a->wanted({0}));
  EXPECT_EQ(a->wanted({1})->turns, 8u);
  b->begin_epoch({.turns = {0, 4}});
  EXPECT_EQ(a->wanted({1})->turns, 3u);
  EXPECT_EQ(a->wanted({1})->jobs, 2u);
}

TEST_F(JobBoardTest, WhoIsGoneWantsNothing) {
  const auto a = board(7);
  auto b = board(7);
  a->look();
  ASSERT_TRUE(a->wanted({0}));

  b.reset();
  a->look();

  EXPECT_EQ(a->others(), 0u);
  EXPECT_FALSE(a->wanted({0}));
}

TEST_F(JobBoardTest, WhatADeadJobLeftIsRemovedAndForeignFilesPassedOver) {
  const auto a = board(7);
  const std::string dead = folder_ + "/job-0.board";
  std::filesystem::copy_file(*std::filesystem::directory_iterator(folder_),
                             dead);
  std::ofstream(folder_ + "/job-1.board") << std::string(5000, 'x');
  std::ofstream(folder_ + "/job-2.board") << "LEATJOB2";

  a->look();

  EXPECT_EQ(a->others(), 0u);
  EXPECT_FALSE(std::filesystem::exists(dead));
}

TEST_F(JobBoardTest, RefusesMoreSamplesThanCanBeRead) {
  const auto made = JobBoard::open(folder_, {}, JobBoard::kMostSamples + 1);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace leat
