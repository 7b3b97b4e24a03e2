// A loader that reads ahead as DELI does, its requests counted against the
// rule.

#include "leat/plan/fetch_ahead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "tests/loader/world.h"

namespace leat {
namespace {

constexpr std::uint64_t kDeliBatch = 8;

LoaderOptions fetching_ahead(FetchAheadOptions fetch_ahead) {
  LoaderOptions options = usual_options();
  options.global_batch_size = kDeliBatch;
  options.max_in_flight = 16;
  options.fetch_ahead = fetch_ahead;
  return options;
}

/// The samples of an epoch in their order, one in 17 of which is empty and is
/// not asked for: the requests of each first this many of them.
std::vector<std::uint64_t> requests_of_first(const World& world) {
  LoaderOptions options = fetching_ahead({});
  options.fetch_ahead.reset();
  auto plain = must(world.load(world.folder() + "/train", options));
  const Catalogue& catalogue = *plain->dataset().catalogue;
  std::vector<std::uint64_t> requests = {0};
  for (const std::uint64_t id : flat(must(run_epoch(*plain)))) {
    std::uint64_t asks = 0;
    for (std::size_t column = 0; column < catalogue.fields().size(); ++column) {
      if (catalogue.fields()[column].kind != FieldKind::kBytes) continue;
      if (catalogue.range(column, SampleId{id}).length_bytes != 0) ++asks;
    }
    requests.push_back(requests.back() + asks);
  }
  return requests;
}

TEST(FetchAheadLoaderTest, AsksForFWhenTAreLeftAndForNoMore) {
  World world;
  const std::vector<std::uint64_t> requests = requests_of_first(world);
  world.serve();
  struct Case {
    FetchAheadOptions asked;
    std::uint64_t bursts;  ///< Batches that ask for more.
  };
  for (const auto& [asked, expected_bursts] :
       {Case{{.fetch_size = 40, .queue_threshold = 10}, 6},
        // The second sample asks already: both at once.
        Case{{.fetch_size = 60, .queue_threshold = 60}, 3},
        Case{{.fetch_size = 3, .queue_threshold = 0}, 30}}) {
    auto loader = must(world.load(kBucketUrl, fetching_ahead(asked)));
    const Loader::Iteration iteration = must(loader->begin());
    FetchAhead rule = *FetchAhead::make(asked);
    std::uint64_t bursts = 0;
    std::uint64_t before = 0;
    while (true) {
      const std::uint64_t end =
          std::min<std::uint64_t>(rule.drawn() + kDeliBatch, World::kSamples);
      while (rule.drawn() < end) (void)rule.draw();
      const std::uint64_t expected =
          requests[std::min<std::uint64_t>(rule.asked(), World::kSamples)];
      bursts += expected != before;
      before = expected;
      // The batch that is waited for has been drawn.
      std::uint64_t gets = 0;
      while (gets < expected && end > loader->stats().back().samples) {
        (void)must(loader->peek_within(std::chrono::hours(1)));
        gets = loader->stats().back().gets;
        ASSERT_LE(gets, expected);
      }

      Loader::Next next = must(loader->next(iteration));

      if (next.is_end()) break;
      EXPECT_LE(loader->stats().back().gets, expected);
    }
    EXPECT_EQ(loader->stats().back().samples, World::kSamples);
    EXPECT_EQ(loader->stats().back().gets, requests.back());
    EXPECT_EQ(loader->stats().back().lookahead, 0u);  // Nobody follows that.
    EXPECT_EQ(bursts, expected_bursts);
    // None of the next epoch, before it begins.
    EXPECT_EQ(loader->stats().back().ahead, 0u);
  }
}

TEST(FetchAheadLoaderTest, AnOnlookerDrawsNothing) {
  World world;
  world.serve();
  auto loader = must(world.load(
      kBucketUrl, fetching_ahead({.fetch_size = 40, .queue_threshold = 10})));
  const Loader::Iteration iteration = must(loader->begin());

  const Loader::Next seen = must(loader->peek_within(
      std::chrono::milliseconds(100), Loader::Memory::kOfTheBatch));

  EXPECT_TRUE(seen.is_not_yet());
  EXPECT_EQ(loader->stats().back().gets, 0u);
  EXPECT_FALSE(must(loader->next(iteration)).is_end());
}

TEST(FetchAheadLoaderTest, ChangesNothingButWhenBytesCome) {
  World world;
  const std::string url = world.folder() + "/train";
  LoaderOptions options = fetching_ahead({});
  options.fetch_ahead.reset();
  auto plain = must(world.load(url, options));
  for (const std::uint64_t fetch_size : {1, 50, 100000}) {
    options.fetch_ahead = FetchAheadOptions{.fetch_size = fetch_size};
    auto loader = must(world.load(url, options));
    for (int epoch = 0; epoch < 2; ++epoch) {
      if (fetch_size == 1) (void)must(run_epoch(*plain));
      (void)must(run_epoch(*loader));
      EXPECT_EQ(loader->stats()[epoch].order_hash,
                plain->stats()[epoch].order_hash);
      EXPECT_EQ(loader->stats()[epoch].content_hash,
                plain->stats()[epoch].content_hash);
    }
  }
}

TEST(FetchAheadLoaderTest, GoesOnFromAState) {
  World world;
  const LoaderOptions options =
      fetching_ahead({.fetch_size = 20, .queue_threshold = 20});
  auto first = must(world.load(world.folder() + "/train", options));
  const Loader::Iteration iteration = must(first->begin());
  for (int i = 0; i < 7; ++i) (void)must(first->next(iteration));
  auto second = must(world.load(world.folder() + "/train", options));
  must(second->load_state(first->state()));

  const Seen seen = must(run_epoch(*second));

  EXPECT_EQ(flat(seen).size(), World::kSamples - 7 * kDeliBatch);
}

}  // namespace
}  // namespace leat
