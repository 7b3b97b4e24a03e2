// Whole epochs while each call of the system that the tiers stand on fails, or
// takes its time: they end, with the content that they have without a cache,
// and what did not work is counted.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "leat/cache/segment_format.h"
#include "leat/cache/testing/faulty_file_ops.h"
#include "leat/cache/tier_health.h"
#include "tests/loader/world.h"

namespace leat {
namespace {

using testing::FaultyFileOps;
using testing::FileCall;

struct Fault {
  const char* name;
  FileCall call;
  int error;  ///< 0: the call works, and is slow.
};

constexpr std::array kFaults = {
    Fault{"open_fails", FileCall::kOpen, EMFILE},
    Fault{"open_is_slow", FileCall::kOpen, 0},
    Fault{"pread_fails", FileCall::kPread, EIO},
    Fault{"pread_is_slow", FileCall::kPread, 0},
    Fault{"pwrite_fails", FileCall::kPwrite, ENOSPC},
    Fault{"pwrite_is_slow", FileCall::kPwrite, 0},
    Fault{"fallocate_fails", FileCall::kPunch, EIO},
    Fault{"fallocate_is_slow", FileCall::kPunch, 0},
    Fault{"unlink_fails", FileCall::kUnlink, EACCES},
    Fault{"unlink_is_slow", FileCall::kUnlink, 0},
    Fault{"map_fails", FileCall::kMap, ENOMEM},
    Fault{"map_is_slow", FileCall::kMap, 0},
};

class CacheFaultsTest : public ::testing::TestWithParam<Fault> {
 protected:
  /// Enough of them to fill the index of a segment, since each puts and drops
  /// half of the samples: another one is made then, and the first one unlinked.
  static constexpr std::uint64_t kEpochs = 40;
  static constexpr std::uint64_t kRoom =
      World::kSamples / 2 * record_cost(3000);

  LoaderOptions options() const {
    LoaderOptions options = usual_options();
    options.epochs = kEpochs;
    return options;
  }
  /// From the second epoch on the fault is there, in the tiers alone: the
  /// content of all, and that the call was made.
  void expect_the_content_of_all(CacheOptions cache) {
    World world;
    const std::string url = world.folder() + "/train";
    auto plain = must(world.load(url, options()));
    auto ops = std::make_shared<FaultyFileOps>();
    ops->set_script([this](FileCall call) { return answer(call); });
    // Memory that is mapped is not read by calls.
    if (GetParam().call == FileCall::kPread) ops->refuse_maps();
    cache.file_ops = ops;
    cache.policy = "fifo";  // Drops the most.
    LoaderOptions with_cache = options();
    with_cache.cache = cache;
    auto loader = must(world.load(url, with_cache));
    EXPECT_EQ(must(run_epoch(*loader)).stats.content_hash,
              must(run_epoch(*plain)).stats.content_hash);
    metrics_ = loader->metrics();
    failures_before_ = metrics_->value(Metric::kCacheTierFailures);
    is_on_ = true;

    for (std::uint64_t epoch = 1; epoch < kEpochs; ++epoch) {
      const Seen seen = must(run_epoch(*loader));
      const Seen expected = must(run_epoch(*plain));
      EXPECT_EQ(seen.stats.samples, World::kSamples);
      EXPECT_EQ(seen.stats.order_hash, expected.stats.order_hash) << epoch;
      EXPECT_EQ(seen.stats.content_hash, expected.stats.content_hash) << epoch;
    }

    loader->settle_cache();
    loader->close();
    for (const Metric gauge :
         {Metric::kCacheDiskBytes, Metric::kCacheRamBytes}) {
      EXPECT_EQ(metrics_->value(gauge), 0);
    }
  }
  int answer(FileCall call) {
    if (!is_on_ || call != GetParam().call) return 0;
    const std::uint64_t nth = asked_++;
    if (GetParam().error == 0) {
      // Some are made beside the timed ones, such as those for a new segment.
      const bool is_slow = is_timed() && nth < 10 && failures() == 0;
      std::this_thread::sleep_for(is_slow ? TierHealth::kSlow + kABit : kABit);
    }
    return -GetParam().error;
  }
  /// Calls of which a tier that is too slow is left.
  static bool is_timed() {
    return GetParam().call == FileCall::kPread ||
           GetParam().call == FileCall::kPwrite;
  }
  void expect_counted() const {
    EXPECT_GT(asked_, 0u);
    // A file that stays, or memory that is read and not mapped, costs nothing
    // that could be counted; nor does a call that is merely slow.
    const bool costs = GetParam().call != FileCall::kUnlink &&
                       GetParam().call != FileCall::kMap &&
                       (GetParam().error != 0 || is_timed());
    if (costs) {
      EXPECT_GT(failures() + metrics_->value(Metric::kCacheRefusals), 0);
    }
  }
  /// Since the fault has been there.
  std::int64_t failures() const {
    return metrics_->value(Metric::kCacheTierFailures) - failures_before_;
  }

  static constexpr Nanoseconds kABit = std::chrono::milliseconds(2);
  std::atomic<bool> is_on_ = false;
  std::atomic<std::uint64_t> asked_ = 0;
  std::shared_ptr<const Metrics> metrics_;
  std::int64_t failures_before_ = 0;
};

TEST_P(CacheFaultsTest, EpochsOverADiskTierEndWithTheRightContent) {
  World folder;  // For its name alone.
  expect_the_content_of_all(
      {.disk = (folder.root() / "tier").string(), .disk_limit_bytes = kRoom});

  // This call concerns memory alone.
  if (GetParam().call == FileCall::kMap) return;
  expect_counted();
}

TEST_P(CacheFaultsTest, EpochsOverARamTierEndWithTheRightContent) {
  expect_the_content_of_all({.ram_bytes = kRoom});

  const FileCall call = GetParam().call;
  if (call == FileCall::kOpen || call == FileCall::kUnlink) return;
  expect_counted();
}

TEST_P(CacheFaultsTest, EpochsOverBothEndWithTheRightContent) {
  World folder;
  expect_the_content_of_all({.ram_bytes = kRoom / 2,
                             .disk = (folder.root() / "tier").string(),
                             .disk_limit_bytes = kRoom / 2});

  expect_counted();
}

TEST(CacheFolderTest, OneThatMayNotBeWrittenIsSaidWithARemedy) {
  World world;
  auto ops = std::make_shared<FaultyFileOps>();
  ops->fail(FileCall::kOpen, EACCES);
  LoaderOptions options = usual_options();
  options.cache = CacheOptions{.disk = (world.root() / "tier").string(),
                               .disk_limit_bytes = 1 << 20,
                               .file_ops = ops};

  const auto loader = world.load(world.folder() + "/train", options);

  ASSERT_FALSE(loader);
  EXPECT_EQ(loader.error().code(), ErrorCode::kPermissionDenied);
  EXPECT_NE(loader.error().message().find("name a folder in disk="),
            std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Calls, CacheFaultsTest, ::testing::ValuesIn(kFaults),
                         [](const auto& of) {
                           return std::string(of.param.name);
                         });

}  // namespace
}  // namespace leat
