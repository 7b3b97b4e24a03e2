// Several exchanges in one process stand to each other as ranks do: each has a
// socket and locks of its own.

#include "leat/cache/segment_exchange.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/units.h"
#include "leat/cache/segment_tier.h"

namespace leat {
namespace {

/// Long enough for a busy machine.
constexpr std::chrono::seconds kPatience{60};

class SegmentExchangeTest : public ::testing::Test {
 protected:
  SegmentExchangeTest() {
    std::string name = ::testing::TempDir() + "leat-exchange-XXXXXX";
    folder_ = std::string(::mkdtemp(name.data())) + "/ram";
  }
  ~SegmentExchangeTest() override {
    std::filesystem::remove_all(std::filesystem::path(folder_).parent_path());
  }
  std::unique_ptr<SegmentTier> open(std::uint32_t expected_writers = 2) {
    auto files = open_segment_exchange(folder_, ops_, kPatience);
    EXPECT_TRUE(files) << files.error().message();
    return *SegmentTier::open(*std::move(files),
                              {.name = "ram",
                               .limit_bytes = kMiB,
                               .expected_writers = expected_writers,
                               .segment_bytes = 64 * kKiB},
                              ops_, clock_, nullptr);
  }
  static RecordKey key_of(std::uint64_t n) { return {.high = n, .low = n}; }
  static bool insert(SegmentTier& tier, std::uint64_t n) {
    return tier.insert(key_of(n), as_bytes(std::to_string(1000 + n)));
  }
  static bool read(SegmentTier& tier, std::uint64_t n) {
    std::string got(4, ' ');
    if (!tier.read(key_of(n), std::as_writable_bytes(std::span(got)))) {
      return false;
    }
    EXPECT_EQ(got, std::to_string(1000 + n));
    return true;
  }

  std::string folder_;
  SystemFileOps ops_;
  SteadyClock clock_;
};

TEST_F(SegmentExchangeTest, RanksReadEachOthersMemory) {
  const auto a = open();
  const auto b = open();
  ASSERT_TRUE(insert(*a, 1));
  ASSERT_TRUE(insert(*b, 2));

  a->refresh();
  b->refresh();

  EXPECT_TRUE(read(*a, 2));
  EXPECT_TRUE(read(*b, 1));
  EXPECT_EQ(a->allowed_bytes(), kMiB / 2);
}

TEST_F(SegmentExchangeTest, AWriterKeepsItsLockThoughOthersHaveItsMemory) {
  const auto a = open();
  ASSERT_TRUE(insert(*a, 1));
  const auto b = open();
  b->refresh();

  b->drop(key_of(1));  // Not b's to drop.

  EXPECT_EQ(b->used_bytes(), 0u);
  EXPECT_TRUE(read(*b, 1));
}

TEST_F(SegmentExchangeTest, ARankThatGoesTakesNothingWithIt) {
  auto a = open();
  const auto b = open();
  const auto c = open();
  ASSERT_TRUE(insert(*a, 1));
  b->refresh();
  c->refresh();
  a.reset();

  EXPECT_TRUE(read(*b, 1));
  b->refresh();  // Takes it over,
  c->refresh();
  EXPECT_EQ(b->used_bytes(), record_cost(4));
  EXPECT_EQ(c->used_bytes(), 0u);
  const auto late = open();  // and hands it out.
  EXPECT_TRUE(read(*late, 1));
  b->drop(key_of(1));

  EXPECT_FALSE(read(*c, 1));
}

TEST_F(SegmentExchangeTest, AKilledRankTakesNothingWithIt) {
  const auto b = open();
  int to_child[2];
  int to_parent[2];
  ASSERT_EQ(::pipe(to_child), 0);
  ASSERT_EQ(::pipe(to_parent), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {  // Its own exchange: nothing of the parent's is used.
    const auto a = open();
    const char ok = insert(*a, 1) ? 'y' : 'n';
    (void)!::write(to_parent[1], &ok, 1);
    char end = 0;
    (void)!::read(to_child[0], &end, 1);  // Until it is killed.
    ::_exit(0);
  }
  char ok = 0;
  ASSERT_EQ(::read(to_parent[0], &ok, 1), 1);
  ASSERT_EQ(ok, 'y');
  b->refresh();
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);

  EXPECT_TRUE(read(*b, 1));
  b->refresh();

  EXPECT_EQ(b->used_bytes(), record_cost(4));
  std::size_t sockets = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder_)) {
    sockets += file.path().extension() == ".sock" ? 1 : 0;
  }
  EXPECT_EQ(sockets, 1u);  // The dead one's is gone.
  for (const int fd : {to_child[0], to_child[1], to_parent[0], to_parent[1]}) {
    ::close(fd);
  }
}

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                       std::filesystem::directory_iterator());
}

TEST_F(SegmentExchangeTest, ARankThatLeavesWithoutRecordsLeavesItsShare) {
  const auto a = open(/*expected_writers=*/1);
  auto b = open(1);
  a->refresh();
  ASSERT_EQ(a->allowed_bytes(), kMiB / 2);
  b.reset();

  a->refresh();

  EXPECT_EQ(a->allowed_bytes(), kMiB);
  EXPECT_EQ(a->segments(), 1u);
}

TEST_F(SegmentExchangeTest, WhatWasTakenOverAndThenRemovedIsForgotten) {
  const auto a = open(/*expected_writers=*/1);
  auto b = open(1);
  ASSERT_TRUE(insert(*b, 1));
  a->refresh();
  auto c = open(1);
  b.reset();
  c->refresh();  // Takes over the segment of b.
  ASSERT_EQ(c->used_bytes(), record_cost(4));
  a->refresh();
  ASSERT_EQ(a->segments(), 3u);
  ASSERT_EQ(a->allowed_bytes(), kMiB / 2);

  c->drop(key_of(1));
  a->refresh();
  EXPECT_EQ(a->segments(), 2u);
  EXPECT_EQ(a->allowed_bytes(), kMiB / 2);
  c.reset();
  a->refresh();

  EXPECT_EQ(a->segments(), 1u);
  EXPECT_EQ(a->allowed_bytes(), kMiB);
}

TEST_F(SegmentExchangeTest, RanksThatComeAndGoLeaveNoDescriptorBehind) {
  const auto a = open(/*expected_writers=*/1);
  const std::ptrdiff_t before = open_descriptors();
  for (int joins = 0; joins < 50; ++joins) {
    auto b = open(1);
    a->refresh();
    b.reset();
    a->refresh();
  }

  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(SegmentExchangeTest, WhatNobodyHandsOutAnyMoreIsNotListedForEver) {
  const auto a = *open_segment_exchange(folder_, ops_, kPatience);
  auto b = *open_segment_exchange(folder_, ops_, kPatience);
  (void)*b->create({.id = 7, .owner = 1, .entry_count = 64});
  ASSERT_EQ(*a->list(), std::vector<std::uint64_t>{7});
  b.reset();
  EXPECT_EQ(*a->list(), std::vector<std::uint64_t>{7});  // We may have it open.

  EXPECT_FALSE(a->open(7));  // We have not.

  EXPECT_TRUE(a->list()->empty());
}

TEST_F(SegmentExchangeTest, WhatIsRemovedTakesNoMemoryThoughOthersHoldIt) {
  const auto a = open();
  const auto b = open();
  for (std::uint64_t n = 0; n < 40; ++n) ASSERT_TRUE(insert(*a, n));
  b->refresh();
  const std::uint64_t before = a->segments();
  for (std::uint64_t n = 0; n < 40; ++n) a->drop(key_of(n));

  b->refresh();

  EXPECT_LT(a->segments(), before);
  for (std::uint64_t n = 0; n < 40; ++n) EXPECT_FALSE(read(*b, n));
}

TEST_F(SegmentExchangeTest, WhatIsRemovedIsSeenToBeByWhoHoldsIt) {
  const auto a = *open_segment_exchange(folder_, ops_, kPatience);
  const auto b = *open_segment_exchange(folder_, ops_, kPatience);
  const SegmentFiles::Opened made =
      *a->create({.id = 7, .owner = 1, .entry_count = 64});
  const std::string body(5 * kPageBytes, 'x');
  ASSERT_EQ(write_all(ops_, made.fd.get(), as_bytes(body), kPageBytes), 0);
  (void)*b->list();
  const SegmentFiles::Opened opened = *b->open(7);
  EXPECT_FALSE(b->is_removed(opened.fd.get()));
  // As if its writer had written only a part of its header so far.
  ASSERT_EQ(write_all(ops_, made.fd.get(), as_bytes(std::string("half")), 24),
            0);
  EXPECT_FALSE(b->is_removed(opened.fd.get()));

  a->remove(7);

  EXPECT_TRUE(b->is_removed(opened.fd.get()));
  struct stat now {};
  ASSERT_EQ(::fstat(opened.fd.get(), &now), 0);
  EXPECT_EQ(now.st_blocks, 0);
}

TEST_F(SegmentExchangeTest, AFolderOpenToOthersIsRefused) {
  ASSERT_EQ(::mkdir(folder_.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);

  const auto refused = open_segment_exchange(folder_, ops_, kPatience);

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kPermissionDenied);
}

TEST_F(SegmentExchangeTest, TheLastOneOutLeavesNoFile) {
  open().reset();

  EXPECT_FALSE(std::filesystem::exists(folder_));
}

}  // namespace
}  // namespace leat
