// Ranks that read samples where they are at home: the same samples in every
// step, the same resume, fewer requests.

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "leat/base/units.h"
#include "tests/loader/world.h"

namespace leat {
namespace {

constexpr std::uint64_t kBatch = 24;  // Divides 240, and among 2 and 3 ranks.

LoaderOptions options_of(std::uint32_t rank, std::uint32_t ranks,
                         bool is_sticky) {
  LoaderOptions options = usual_options();
  options.global_batch_size = kBatch;
  options.rank = Rank{rank, ranks};
  options.sticky_ranks = is_sticky;
  return options;
}

std::unique_ptr<Loader> open(const World& world, const LoaderOptions& options) {
  return must(world.load(world.folder() + "/train", options));
}

/// The ids of each step from the loader's place on, at most `steps` of them.
std::vector<std::vector<std::uint64_t>> steps_of(Loader& loader,
                                                 std::size_t steps = 1000) {
  std::vector<std::vector<std::uint64_t>> ids;
  const Loader::Iteration iteration = must(loader.begin());
  while (ids.size() < steps) {
    Loader::Next next = must(loader.next(iteration));
    if (next.is_end()) break;
    ids.emplace_back();
    for (const SampleId id : next.batch().ids) ids.back().push_back(id.value);
  }
  return ids;
}

/// The samples of each step, of all ranks together.
std::vector<std::vector<std::uint64_t>> together(
    const World& world, std::uint32_t ranks, bool is_sticky,
    const std::optional<std::string>& state = std::nullopt,
    std::size_t steps = 1000, std::string* state_after = nullptr) {
  std::vector<std::vector<std::uint64_t>> all;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    auto loader = open(world, options_of(rank, ranks, is_sticky));
    if (state) must(loader->load_state(*state));
    const auto mine = steps_of(*loader, steps);
    if (state_after != nullptr) *state_after = loader->state();
    all.resize(std::max(all.size(), mine.size()));
    for (std::size_t k = 0; k < mine.size(); ++k) {
      EXPECT_EQ(mine[k].size(), kBatch / ranks);
      all[k].insert(all[k].end(), mine[k].begin(), mine[k].end());
    }
  }
  for (auto& step : all) std::ranges::sort(step);
  return all;
}

TEST(StickyRanksTest, EveryStepKeepsItsSamples) {
  World world;

  const auto plain = together(world, 3, false);
  const auto sticky = together(world, 3, true);

  ASSERT_EQ(plain.size(), World::kSamples / kBatch);
  EXPECT_EQ(plain, sticky);
  auto one = open(world, options_of(1, 3, false));
  auto other = open(world, options_of(1, 3, true));
  EXPECT_NE(steps_of(*one), steps_of(*other));
}

TEST(StickyRanksTest, GoOnAtAnotherWorldSizeOrWithoutIt) {
  World world;
  const auto whole = together(world, 3, false);
  std::string state;
  (void)together(world, 3, true, std::nullopt, 4, &state);

  const std::vector<std::vector<std::uint64_t>> rest(whole.begin() + 4,
                                                     whole.end());

  EXPECT_EQ(together(world, 2, true, state), rest);
  EXPECT_EQ(together(world, 3, true, state), rest);
  EXPECT_EQ(together(world, 3, false, state), rest);
}

/// The share of reads after the first epoch that went to the store, of three
/// nodes that keep a fifth more than what each reads in an epoch.
double missed_later(const World& world, bool is_sticky) {
  std::uint64_t misses = 0;
  std::uint64_t reads = 0;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    LoaderOptions options = options_of(rank, 3, is_sticky);
    options.cache = CacheOptions{.ram_bytes = 96 * (4096 + 128)};
    options.epochs = 5;
    auto loader = open(world, options);
    for (int epoch = 0; epoch < 5; ++epoch) (void)must(run_epoch(*loader));
    for (const EpochStats& stats : loader->stats()) {
      if (stats.epoch == 0) continue;
      misses += stats.misses;
      reads += stats.misses + stats.ram_hits;
    }
  }
  return static_cast<double>(misses) / static_cast<double>(reads);
}

TEST(StickyRanksTest, CachesOfNodesMeetTheirSamplesAgain) {
  World world;

  const double plain = missed_later(world, false);
  const double sticky = missed_later(world, true);

  EXPECT_GT(plain, .35);
  EXPECT_LT(sticky, .25);
  RecordProperty("plain", std::to_string(plain));
  RecordProperty("sticky", std::to_string(sticky));
}

}  // namespace
}  // namespace leat
