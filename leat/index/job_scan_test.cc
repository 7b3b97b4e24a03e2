#include "leat/index/job_scan.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leat {
namespace {

using Who = JobScan::Listed::Who;
using Sight = JobScan::Sight;

/// The texts of a job.
struct Texts {
  Mutex mutex;
  std::map<std::string, std::string> at LEAT_GUARDED_BY(mutex);
  std::vector<std::string> ended LEAT_GUARDED_BY(mutex);
  std::size_t most_bytes = 1 << 20;
  bool is_gone = false;
  bool fails_once = false;
};

/// A rank's way to them. It beats when told to.
class TestBoard final : public ScanBoard {
 public:
  TestBoard(Texts& texts, Rank rank) : texts_(texts), rank_(rank) {}

  Rank rank() const override { return rank_; }
  std::string begin(std::string_view place) override {
    return "o/" + std::string(place);
  }
  void end(const std::string& opening, std::size_t shards) override {
    const MutexLock lock(texts_.mutex);
    texts_.ended.push_back(opening + " " + std::to_string(shards));
  }
  Result<bool> claim(const std::string& name, std::string_view text) override {
    if (texts_.is_gone) return gone();
    const MutexLock lock(texts_.mutex);
    return texts_.at.emplace(name, text).first->second == text;
  }
  Result<bool> put(const std::string& name, std::string_view bytes) override {
    if (texts_.is_gone || std::exchange(texts_.fails_once, false)) {
      return gone();
    }
    if (bytes.size() > texts_.most_bytes) return false;
    const MutexLock lock(texts_.mutex);
    texts_.at[name] = bytes;
    return true;
  }
  Result<std::optional<std::string>> get(const std::string& name) override {
    if (texts_.is_gone) return gone();
    const MutexLock lock(texts_.mutex);
    const auto found = texts_.at.find(name);
    if (found == texts_.at.end()) return std::optional<std::string>();
    return std::optional(found->second);
  }
  Result<std::optional<std::string>> text(const std::string& name) override {
    return get(name);
  }

 private:
  static Error gone() { return Error(ErrorCode::kUnavailable, "gone"); }

  Texts& texts_;
  const Rank rank_;
};

class JobScanTest : public ::testing::Test {
 protected:
  static JobScanTimes times() {
    return {.to_die = std::chrono::milliseconds(60),
            .to_come = std::chrono::milliseconds(30),
            .ask = Nanoseconds(0),
            .look = Nanoseconds(0),
            .first_pause = std::chrono::milliseconds(1),
            .longest_pause = std::chrono::milliseconds(1)};
  }
  std::unique_ptr<JobScan> rank(std::uint32_t rank) {
    return std::make_unique<JobScan>(
        std::make_shared<TestBoard>(texts_, Rank{rank, 2}), "p", times());
  }
  void set(const std::string& name, const std::string& text) {
    const MutexLock lock(texts_.mutex);
    texts_.at["o/p/" + name] = text;
  }
  std::size_t ended() {
    const MutexLock lock(texts_.mutex);
    return texts_.ended.size();
  }
  /// Looks until there is an answer.
  static Sight settled(JobScan& scan, std::size_t shard, ScanEntry& entry) {
    Sight sight = scan.look_at(shard, entry);
    while (sight == Sight::kComing) {
      std::this_thread::yield();
      sight = scan.look_at(shard, entry);
    }
    return sight;
  }

  static SortedObjects shards() {
    return {.layout = Layout::kShards,
            .data = {{.key = "a.tar", .size_bytes = 10, .etag = "e"},
                     {.key = "b.tar", .size_bytes = 20, .etag = "f"}},
            .companions = {}};
  }
  static ScannedShard scanned() {
    return {.members = {{.name = "x.bin", .offset = 512, .size_bytes = 7}},
            .note = ""};
  }

  Texts texts_;
};

TEST_F(JobScanTest, OneRankListsForAll) {
  const auto first = rank(0);
  const auto second = rank(1);

  EXPECT_EQ(first->take_listing({})->who, Who::kThis);
  const SortedObjects objects = shards();
  first->tell_listing(&objects);
  const auto listed = second->take_listing({});

  ASSERT_TRUE(listed);
  EXPECT_EQ(listed->who, Who::kOther);
  EXPECT_TRUE(is_same(listed->objects, objects));
}

TEST_F(JobScanTest, WithoutUnindexedShardsEachOpensForItself) {
  const auto first = rank(0);
  const auto second = rank(1);
  (void)first->take_listing({});

  first->tell_listing(nullptr);

  EXPECT_EQ(second->take_listing({})->who, Who::kNobody);
}

TEST_F(JobScanTest, NobodyWaitsForAListerThatIsGone) {
  auto first = rank(0);
  const auto second = rank(1);
  (void)first->take_listing({});

  first.reset();  // It leaves.

  EXPECT_EQ(second->take_listing({})->who, Who::kNobody);
}

TEST_F(JobScanTest, NobodyWaitsForAListerThatDies) {
  const auto first = rank(0);
  const auto second = rank(1);
  (void)first->take_listing({});
  set("beat/0", "1");  // And no more.

  EXPECT_EQ(second->take_listing({})->who, Who::kNobody);
}

TEST_F(JobScanTest, NobodyWaitsForAListerThatFailsToTell) {
  const auto first = rank(0);
  const auto second = rank(1);
  (void)first->take_listing({});
  const SortedObjects objects = shards();
  texts_.fails_once = true;

  EXPECT_FALSE(first->tell_listing(&objects));

  EXPECT_EQ(second->take_listing({})->who, Who::kNobody);
}

TEST_F(JobScanTest, AListerHearsThatItsListingIsTooLarge) {
  const auto first = rank(0);
  const auto second = rank(1);
  (void)first->take_listing({});
  const SortedObjects objects = shards();
  texts_.most_bytes = 8;

  EXPECT_FALSE(first->tell_listing(&objects));

  EXPECT_EQ(second->take_listing({})->who, Who::kNobody);
}

TEST_F(JobScanTest, WhatAnEarlierOpeningLeftIsNotTaken) {
  auto first = rank(0);
  (void)first->take_listing({});
  const SortedObjects objects = shards();
  EXPECT_TRUE(first->tell_listing(&objects));
  first.reset();  // It opens the place once more than others.

  EXPECT_EQ(rank(1)->take_listing({})->who, Who::kNobody);
}

TEST_F(JobScanTest, WhatAnEarlierProcessOfThisRankLeftIsNotTaken) {
  const auto killed = rank(1);
  EXPECT_EQ(killed->take_listing({})->who, Who::kThis);
  const SortedObjects objects = shards();
  EXPECT_TRUE(killed->tell_listing(&objects));

  EXPECT_EQ(rank(1)->take_listing({})->who, Who::kNobody);
}

TEST_F(JobScanTest, ShardsOfAnotherListingAreLeftToThisRank) {
  const auto first = rank(0);
  const auto second = rank(1);
  SortedObjects objects = shards();
  (void)first->take_listing({});
  EXPECT_TRUE(first->tell_listing(&objects));
  ScanEntry entry;
  (void)second->take_listing({});
  second->tell(1, scanned());
  EXPECT_EQ(first->look_at(1, entry), Sight::kThere);

  objects.data[1].etag = "changed";
  EXPECT_TRUE(second->tell_listing(&objects));
  second->tell(1, scanned());
  EXPECT_EQ(first->look_at(1, entry), Sight::kLeft);
}

TEST_F(JobScanTest, ARankLeavesOnceAndNamesTheShards) {
  auto first = rank(0);
  const SortedObjects objects = shards();
  (void)first->take_listing({});
  EXPECT_TRUE(first->tell_listing(&objects));
  first->leave();
  first.reset();

  const MutexLock lock(texts_.mutex);
  EXPECT_EQ(texts_.ended, std::vector<std::string>{"o/p 2"});
  EXPECT_TRUE(texts_.at.contains("o/p/left/0"));
}

TEST_F(JobScanTest, ARankHearsOfTheShardsOfOthers) {
  const auto first = rank(0);
  const auto second = rank(1);
  ScanEntry entry;
  EXPECT_TRUE(first->is_ours(0) && first->is_ours(2) && !first->is_ours(1));
  set("beat/1", "1");
  EXPECT_EQ(first->look_at(1, entry), Sight::kComing);

  second->tell(1, scanned());
  second->tell(3, Error(ErrorCode::kCorrupt, "cut short"));

  ASSERT_EQ(first->look_at(1, entry), Sight::kThere);
  EXPECT_EQ(entry.shard.members[0].name, "x.bin");
  ASSERT_EQ(first->look_at(3, entry), Sight::kThere);
  ASSERT_TRUE(entry.error);
  EXPECT_EQ(entry.error->code(), ErrorCode::kCorrupt);
}

TEST_F(JobScanTest, ShardsOfARankThatDoesNotComeAreLeftToTheOthers) {
  const auto first = rank(0);
  ScanEntry entry;
  EXPECT_EQ(first->look_at(1, entry), Sight::kComing);
  EXPECT_EQ(settled(*first, 1, entry), Sight::kLeft);
}

TEST_F(JobScanTest, ShardsOfARankThatBeatsAreWaitedFor) {
  const auto first = rank(0);
  ScanEntry entry;
  const SteadyClock clock;
  const TimePoint end = clock.now() + 3 * times().to_die;
  for (int beat = 0; clock.now() < end; ++beat) {
    set("beat/1", std::to_string(beat));
    ASSERT_EQ(first->look_at(1, entry), Sight::kComing);
  }
  EXPECT_EQ(settled(*first, 1, entry), Sight::kLeft);  // It beats no more.
}

TEST_F(JobScanTest, WhatARankToldBeforeItLeftIsThere) {
  const auto first = rank(0);
  auto second = rank(1);
  second->tell(1, scanned());
  second.reset();

  ScanEntry entry;
  EXPECT_EQ(first->look_at(1, entry), Sight::kThere);
  EXPECT_EQ(first->look_at(3, entry), Sight::kLeft);
}

TEST_F(JobScanTest, MembersTooManyToTellAreLeftToTheOthers) {
  const auto first = rank(0);
  const auto second = rank(1);
  texts_.most_bytes = 8;
  second->tell(1, scanned());

  ScanEntry entry;
  EXPECT_EQ(first->look_at(1, entry), Sight::kLeft);
}

TEST_F(JobScanTest, ATextThatNobodyWroteIsLeftToThisRank) {
  const auto first = rank(0);
  ScanEntry entry;
  for (const std::string text : {"", "S", "F", "Sxyz", "?"}) {
    set("shard/1", text);
    EXPECT_EQ(first->look_at(1, entry), Sight::kLeft) << text;
  }
}

TEST_F(JobScanTest, ABoardThatIsGoneLeavesAllToEach) {
  const auto first = rank(0);
  ScanEntry entry;
  texts_.is_gone = true;

  EXPECT_EQ(first->look_at(1, entry), Sight::kLeft);
  first->tell(0, scanned());
  EXPECT_FALSE(first->is_awaited());
  EXPECT_EQ(rank(1)->take_listing({})->who, Who::kNobody);
}

TEST_F(JobScanTest, ARankThatLosesTheBoardOnceSaysThatItLeaves) {
  const auto first = rank(0);
  const auto second = rank(1);
  set("beat/1", "1");
  texts_.fails_once = true;

  second->tell(1, scanned());

  // At once: rank 1 would beat for long.
  ScanEntry entry;
  EXPECT_EQ(first->look_at(1, entry), Sight::kLeft);
}

TEST_F(JobScanTest, ARankThatLosesTheBoardBeatsNoMore) {
  auto first = rank(0);
  texts_.is_gone = true;
  first->tell(0, scanned());
  EXPECT_EQ(ended(), 1u);

  first.reset();  // Once is enough.
  EXPECT_EQ(ended(), 1u);
}

TEST_F(JobScanTest, ARankThatLeavesIsNotWaitedForAndAsksNobody) {
  const auto first = rank(0);
  const auto second = rank(1);
  set("beat/1", "1");
  second->tell(1, scanned());

  second->leave();

  ScanEntry entry;
  EXPECT_EQ(first->look_at(1, entry), Sight::kThere);
  EXPECT_EQ(first->look_at(3, entry), Sight::kLeft);
  EXPECT_EQ(second->look_at(0, entry), Sight::kLeft);
  EXPECT_EQ(ended(), 1u);
}

TEST_F(JobScanTest, ARankThatWaitsSaysItAgain) {
  const auto first = rank(0);
  const auto second = rank(1);
  second->begin_shard(3);
  first->say_waiting(true);
  first->ask_for(3);
  set("awaited/1", "1");  // Another rank waits for less.
  EXPECT_FALSE(second->is_awaited());

  first->ask_for(3);

  EXPECT_TRUE(second->is_awaited());
}

TEST_F(JobScanTest, ARankThatWaitsDoesNotSayItAllTheTime) {
  JobScanTimes seldom = times();
  seldom.ask = std::chrono::hours(1);
  JobScan first(std::make_shared<TestBoard>(texts_, Rank{0, 2}), "p", seldom);
  const auto second = rank(1);
  second->begin_shard(3);
  first.say_waiting(true);
  first.ask_for(3);
  EXPECT_TRUE(second->is_awaited());
  set("awaited/1", "1");

  first.ask_for(3);

  EXPECT_FALSE(second->is_awaited());
}

TEST_F(JobScanTest, ARankHearsThatTrainingWaitsForItsShard) {
  const auto first = rank(0);
  const auto second = rank(1);
  second->begin_shard(3);
  first->ask_for(3);
  EXPECT_FALSE(second->is_awaited());  // Nobody's training waits.

  first->say_waiting(true);
  first->ask_for(1);
  EXPECT_FALSE(second->is_awaited());  // That one is known.
  first->ask_for(3);
  EXPECT_TRUE(second->is_awaited());
  second->begin_shard(5);
  EXPECT_FALSE(second->is_awaited());
}

TEST_F(JobScanTest, ManyRanksLookLessOften) {
  const JobScan one(std::make_shared<TestBoard>(texts_, Rank{0, 2}), "p");
  const JobScan many(std::make_shared<TestBoard>(texts_, Rank{0, 1024}), "p");
  EXPECT_LT(one.pause(0), one.pause(3));
  EXPECT_EQ(one.pause(100), JobScanTimes{}.longest_pause);
  EXPECT_EQ(many.pause(100), 16 * one.pause(100));
}

}  // namespace
}  // namespace leat
