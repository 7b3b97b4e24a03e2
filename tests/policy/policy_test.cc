// A program with a policy of its own is a program like any other: the loader
// takes the policy by its name, the simulator foretells it, and messages name
// it. (The properties of all policies run on it too: see CMakeLists.txt.)

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "leat/base/units.h"
#include "leat/engine/loader/loader.h"
#include "leat/plan/simulator.h"
#include "leat/plan/sweep.h"
#include "tests/loader/world.h"

namespace leat {
namespace {

TEST(PolicyOfOurOwnTest, ALoaderKeepsWhatItSays) {
  World world;
  const std::string url = world.folder() + "/train";
  LoaderOptions options = usual_options();
  options.epochs = 3;
  auto plain = must(world.load(url, options));
  options.cache = {.ram_bytes = 512 * kKiB, .policy = "newest_first"};
  auto loader = must(world.load(url, options));

  for (int epoch = 0; epoch < 3; ++epoch) {
    EXPECT_EQ(must(run_epoch(*loader)).stats.content_hash,
              must(run_epoch(*plain)).stats.content_hash);
  }

  // Records that were admitted first stay, and the rest pushes itself out.
  const EpochStats last = loader->stats()[2];
  EXPECT_GT(last.ram_hits, 0u);
  EXPECT_GT(last.misses, 0u);
}

TEST(PolicyOfOurOwnTest, MessagesNameIt) {
  World world;
  LoaderOptions options = usual_options();
  options.cache = {.ram_bytes = kMiB, .policy = "newest"};

  const auto loader = world.load(world.folder() + "/train", options);

  ASSERT_FALSE(loader);
  EXPECT_NE(loader.error().message().find("fifo, newest_first"),
            std::string::npos)
      << loader.error().message();
}

TEST(PolicyOfOurOwnTest, APlanComparesIt) {
  const auto rows = must(
      sweep({.samples = 100,
             .read_size =
                 [](std::uint64_t) { return ReadSize{.bytes = 1, .cost = 1}; },
             .global_batch = 10,
             .ram_bytes = 50}));

  EXPECT_EQ(std::ranges::count(rows, "newest_first", &SweepRow::name), 1);
  EXPECT_EQ(std::ranges::count(rows, "windowed_belady", &SweepRow::name), 0);
}

TEST(PolicyOfOurOwnTest, ItsTraitsSayWhatItCannot) {
  World world;
  LoaderOptions options = usual_options();
  options.cache = {.ram_bytes = kMiB, .policy = "newest_first", .window = 100};
  const std::string url = world.folder() + "/train";
  EXPECT_FALSE(world.load(url, options));

  options.cache->window = 0;
  EXPECT_TRUE(world.load(url, options));

  options.cache->placement = Placement::kFirstEpoch;
  EXPECT_FALSE(world.load(url, options));
}

}  // namespace
}  // namespace leat
