#include "leat/index/scan_log.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using Kind = ScanEntry::Kind;
using Turn = ScanLog::Turn;

SortedObjects shards(std::size_t count, const std::string& etag = "e") {
  SortedObjects objects{.layout = Layout::kShards};
  for (std::size_t i = 0; i < count; ++i) {
    objects.data.push_back({.key = std::to_string(i) + ".tar",
                            .size_bytes = 10'240 + i,
                            .etag = etag});
  }
  objects.companions.push_back(
      {.key = "list.json", .size_bytes = 7, .etag = ""});
  return objects;
}

ScannedShard scanned(std::uint64_t shard) {
  return {.members = {{.name = "a\n\xff" + std::to_string(shard) + ".bin",
                       .offset = 512,
                       .size_bytes = 100 + shard},
                      {.name = "",
                       .offset = 1536,
                       .size_bytes = 0,
                       .field = "image/encoded"}},
          .note = shard % 2 == 0 ? "" : "a note"};
}

class ScanLogTest : public ::testing::Test {
 protected:
  ~ScanLogTest() override { std::filesystem::remove(path_); }

  std::unique_ptr<ScanLog> write(const SortedObjects& objects) const {
    auto lock = CatalogueLock::try_lock(path_);
    if (!lock || !*lock) return nullptr;
    auto log = ScanLog::write(path_, **std::move(lock));
    EXPECT_TRUE(log && (*log)->start(objects));
    return log ? *std::move(log) : nullptr;
  }
  std::unique_ptr<ScanLog> read() const { return ScanLog::read(path_); }

  /// The shards that come now; each as it was written.
  static std::size_t shards_from(ScanLog& log, std::size_t first = 0) {
    std::size_t shard = first;
    while (auto entry = log.next()) {
      if (entry->kind != Kind::kShard) break;
      EXPECT_EQ(entry->shard.members, scanned(shard).members);
      EXPECT_EQ(entry->shard.note, scanned(shard).note);
      ++shard;
    }
    return shard - first;
  }

  static void add(ScanLog& log, std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) {
      EXPECT_TRUE(log.append(scanned(i)));
    }
  }

  std::string bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void put(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary) << bytes;
  }

  const std::string path_ =
      std::filesystem::path(::testing::TempDir()) /
      ("scan-" + std::to_string(getpid()) + "-" +
       ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(ScanLogTest, WhatOneWritesAnotherReads) {
  const auto writer = write(shards(5));
  const auto reader = read();
  ASSERT_NE(reader, nullptr);

  EXPECT_TRUE(is_same(reader->objects(), shards(5)));
  EXPECT_FALSE(reader->next());
  add(*writer, 0, 2);
  EXPECT_EQ(shards_from(*reader), 2u);
  add(*writer, 2, 3);
  EXPECT_EQ(shards_from(*reader, 2), 3u);
  reader->rewind();
  EXPECT_EQ(shards_from(*reader), 5u);
  EXPECT_EQ(reader->take_turn(), Turn::kOthers);

  writer->end();
  const auto last = reader->next();
  ASSERT_TRUE(last);
  EXPECT_EQ(last->kind, Kind::kEnd);
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_EQ(reader->take_turn(), Turn::kNobodys);
}

TEST_F(ScanLogTest, AFailureIsToldAsItWas) {
  const auto writer = write(shards(2));
  const auto reader = read();
  EXPECT_TRUE(writer->append(Error(ErrorCode::kCorrupt, "1.tar is cut")));

  const auto told = reader->next();

  ASSERT_TRUE(told);
  ASSERT_EQ(told->kind, Kind::kFailed);
  EXPECT_EQ(told->error->code(), ErrorCode::kCorrupt);
  EXPECT_EQ(told->error->message(), "1.tar is cut");
}

TEST_F(ScanLogTest, WhatNobodyWritesAnyMoreIsNotRead) {
  write(shards(2));
  EXPECT_TRUE(std::filesystem::exists(path_));
  EXPECT_EQ(read(), nullptr);
  EXPECT_EQ(ScanLog::read(path_ + "-that-is-not-there"), nullptr);
}

TEST_F(ScanLogTest, AReaderTakesOverWhereTheFileEnds) {
  auto writer = write(shards(5));
  const auto first = read();
  const auto second = read();
  add(*writer, 0, 2);
  EXPECT_EQ(shards_from(*first), 2u);
  writer.reset();

  EXPECT_EQ(first->take_turn(), Turn::kOurs);
  EXPECT_TRUE(first->is_writer());
  EXPECT_EQ(second->take_turn(), Turn::kOthers);
  add(*first, 2, 3);

  EXPECT_EQ(shards_from(*second), 5u);
}

TEST_F(ScanLogTest, ALogThatIsLeftIsAnothersTurn) {
  const auto writer = write(shards(2));
  const auto reader = read();
  writer->leave();
  EXPECT_EQ(reader->take_turn(), Turn::kOurs);
}

TEST_F(ScanLogTest, WhoWritesIsLetGoOfByDying) {
  int told[2];
  ASSERT_EQ(pipe(told), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto writer = write(shards(3));
    if (writer != nullptr && writer->append(scanned(0))) {
      (void)!::write(told[1], "x", 1);
    }
    pause();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(told[0], &byte, 1), 1);
  const auto reader = read();
  ASSERT_NE(reader, nullptr);
  EXPECT_EQ(reader->take_turn(), Turn::kOthers);

  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);

  EXPECT_EQ(reader->take_turn(), Turn::kOurs);
  EXPECT_EQ(shards_from(*reader), 1u);
  close(told[0]);
  close(told[1]);
}

TEST_F(ScanLogTest, TheSameObjectsGoOnWithWhatTheDeadLeft) {
  auto dead = write(shards(5));
  add(*dead, 0, 3);
  EXPECT_TRUE(dead->append(Error(ErrorCode::kUnavailable, "no network")));
  dead.reset();

  const auto writer = write(shards(5));
  const auto reader = read();

  EXPECT_EQ(shards_from(*writer), 3u);
  EXPECT_FALSE(writer->next()) << "the failure was another's";
  add(*writer, 3, 2);
  EXPECT_EQ(shards_from(*reader), 5u);
}

TEST_F(ScanLogTest, OtherObjectsBeginAnew) {
  for (const SortedObjects& others :
       {shards(4), shards(5, "another"), SortedObjects{}}) {
    auto dead = write(shards(5));
    add(*dead, 0, 5);
    const auto reader = read();
    EXPECT_EQ(shards_from(*reader), 5u);
    dead.reset();

    auto writer = write(others);

    EXPECT_FALSE(writer->next());
    const auto told = reader->next();
    ASSERT_TRUE(told);
    ASSERT_EQ(told->kind, Kind::kFailed);
    EXPECT_EQ(told->error->code(), ErrorCode::kUnavailable);
    writer->remove();
  }
}

TEST_F(ScanLogTest, WhatTheDeadLeftIsNotReadBeforeItIsGoneOnWith) {
  auto dead = write(shards(5));
  add(*dead, 0, 3);
  dead.reset();
  auto lock = CatalogueLock::try_lock(path_);
  ASSERT_TRUE(lock && *lock);
  auto writer = ScanLog::write(path_, **std::move(lock));
  ASSERT_TRUE(writer);

  (*writer)->hide();
  EXPECT_EQ(read(), nullptr);
  EXPECT_TRUE((*writer)->start(shards(5)));

  const auto reader = read();
  ASSERT_NE(reader, nullptr);
  EXPECT_EQ(shards_from(*reader), 3u);
  EXPECT_EQ(shards_from(**writer), 3u);
}

TEST_F(ScanLogTest, WhoDiesBeforeItGoesOnLeavesNothing) {
  auto dead = write(shards(5));
  add(*dead, 0, 3);
  dead->hide();
  dead.reset();

  const auto writer = write(shards(5));

  EXPECT_FALSE(writer->next());
  add(*writer, 0, 5);
  EXPECT_EQ(shards_from(*read()), 5u);
}

TEST_F(ScanLogTest, ATornTailIsNotThere) {
  auto writer = write(shards(5));
  add(*writer, 0, 2);
  const std::string whole = bytes();
  add(*writer, 2, 1);
  const std::string more = bytes();
  for (std::size_t size = whole.size(); size < more.size(); ++size) {
    put(more.substr(0, size));
    const auto reader = read();
    ASSERT_NE(reader, nullptr);
    ASSERT_EQ(shards_from(*reader), 2u) << size;
  }
  writer.reset();
  const auto next = write(shards(5));
  EXPECT_EQ(shards_from(*next), 2u);
  add(*next, 2, 3);
  const auto reader = read();
  EXPECT_EQ(shards_from(*reader), 5u);
}

TEST_F(ScanLogTest, NothingFromAChangedByteOnIsTaken) {
  const auto writer = write(shards(3));
  const std::size_t listing = bytes().size();
  add(*writer, 0, 3);
  const std::string good = bytes();
  const std::size_t entry = (good.size() - listing) / 3;
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ (1 << i % 8));
    put(bad);
    const auto reader = read();
    if (i < listing) {
      ASSERT_EQ(reader, nullptr) << i;
    } else {
      ASSERT_LE(shards_from(*reader), (i - listing) / entry + 1) << i;
      reader->rewind();
      ASSERT_LT(shards_from(*reader), 3u) << i;
    }
  }
}

TEST_F(ScanLogTest, EntriesOfAnotherListingAreNotTaken) {
  auto writer = write(shards(3));
  add(*writer, 0, 2);
  const std::string some = bytes();
  writer->remove();
  writer = write(shards(3, "f"));  // As long as the other.
  const std::string listing = bytes();
  put(listing + some.substr(listing.size()));

  const auto reader = read();

  ASSERT_NE(reader, nullptr);
  EXPECT_FALSE(reader->next());
}

TEST_F(ScanLogTest, MoreShardsThanWereListedAreNotTaken) {
  const auto writer = write(shards(2));
  const auto reader = read();
  add(*writer, 0, 4);
  EXPECT_EQ(shards_from(*reader), 2u);
}

TEST_F(ScanLogTest, WhatTheDeadLeftIsRemovedAndWhatIsWrittenIsNot) {
  ScanLog::remove_left(path_);  // There is none.
  EXPECT_FALSE(std::filesystem::exists(path_));
  auto writer = write(shards(2));

  ScanLog::remove_left(path_);
  EXPECT_TRUE(std::filesystem::exists(path_));
  writer.reset();
  EXPECT_TRUE(std::filesystem::exists(path_)) << "it holds what was found";
  ScanLog::remove_left(path_);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(ScanLogTest, WhoWritesKnowsWhetherSomebodyWaits) {
  const auto writer = write(shards(2));
  const auto first = read();
  auto second = read();
  EXPECT_FALSE(writer->is_awaited());
  first->say_awaited(true);
  second->say_awaited(true);
  EXPECT_TRUE(writer->is_awaited());
  first->say_awaited(false);
  EXPECT_TRUE(writer->is_awaited());
  second.reset();
  EXPECT_FALSE(writer->is_awaited());
  writer->say_awaited(true);
  EXPECT_FALSE(writer->is_awaited()) << "it waits for itself";
}

}  // namespace
}  // namespace leat
