#include "leat/plan/placement.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "leat/plan/next_use.h"
#include "leat/plan/steps.h"

namespace leat {
namespace {

NextUseOptions placed_job(std::uint64_t samples, std::uint32_t ranks,
                          std::uint64_t epochs) {
  return {.samples = samples,
          .order = {.shuffle = Shuffle::kFull, .seed = 7},
          .global_batch = 4ULL * ranks,
          .ranks = {0, 1, ranks},
          .end_epoch = epochs};
}

/// How often each node reads each sample, by walking what each rank is given.
std::vector<std::vector<int>> reads_by_rank(const NextUseOptions& job,
                                            std::uint32_t nodes) {
  std::vector<std::vector<int>> reads(nodes, std::vector<int>(job.samples));
  for (std::uint32_t rank = 0; rank < job.ranks.world_size; ++rank) {
    const auto steps = *Steps::make({.samples = job.samples,
                                     .global_batch = job.global_batch,
                                     .rank = {rank, job.ranks.world_size},
                                     .tail = job.tail});
    for (std::uint64_t epoch = 0; epoch < job.end_epoch; ++epoch) {
      const EpochOrder order(job.samples, job.order, nullptr, epoch);
      for (std::uint64_t k = 0; k < steps.count(); ++k) {
        const StepSlice slice = steps.slice(k);
        for (std::uint64_t p = slice.begin; p < slice.end; ++p) {
          ++reads[rank / (job.ranks.world_size / nodes)][order.at(p).value];
        }
      }
    }
  }
  return reads;
}

std::vector<std::uint64_t> samples_of_nodes(
    const std::vector<std::uint16_t>& node_of, std::uint32_t nodes) {
  std::vector<std::uint64_t> samples(nodes);
  for (const std::uint16_t node : node_of) ++samples.at(node);
  return samples;
}

TEST(NodesByFrequencyTest, EachNodeHasItsEvenPart) {
  const auto node_of = nodes_by_frequency(placed_job(1000, 8, 6), 4);
  ASSERT_TRUE(node_of.has_value());

  EXPECT_EQ(samples_of_nodes(*node_of, 4),
            (std::vector<std::uint64_t>{250, 250, 250, 250}));
}

TEST(NodesByFrequencyTest, NodesReadMostOfTheirReadsFromThemselves) {
  const NextUseOptions job = placed_job(4000, 4, 10);
  const auto node_of = nodes_by_frequency(job, 4);
  ASSERT_TRUE(node_of.has_value());
  const auto reads = reads_by_rank(job, 4);

  int own = 0;
  int best = 0;
  for (std::uint64_t i = 0; i < job.samples; ++i) {
    own += reads[(*node_of)[i]][i];
    int most = 0;
    for (const auto& of_node : reads) most = std::max(most, of_node[i]);
    best += most;
  }

  // A quarter of the reads would be, if keys drew the node. `best` is without
  // even parts.
  EXPECT_GT(own, 4000 * 10 * 2 / 5);
  EXPECT_GT(own, best * 97 / 100);
}

// A sample is elsewhere only if who reads it more often had no room.
RC_GTEST_PROP(NodesByFrequencyProperty, FavouritesAreDealtFirst, ()) {
  const auto nodes = *rc::gen::inRange<std::uint16_t>(1, 5);
  const NextUseOptions job =
      placed_job(*rc::gen::inRange<std::uint64_t>(1, 200),
                 nodes * *rc::gen::inRange<std::uint32_t>(1, 3),
                 *rc::gen::inRange<std::uint64_t>(1, 6));
  const auto node_of = *nodes_by_frequency(job, nodes);
  const auto reads = reads_by_rank(job, nodes);
  const auto samples = samples_of_nodes(node_of, nodes);
  const std::uint64_t part = (job.samples + nodes - 1) / nodes;

  for (std::uint64_t i = 0; i < job.samples; ++i) {
    for (std::uint16_t node = 0; node < nodes; ++node) {
      RC_ASSERT(samples[node] <= part);
      if (reads[node][i] > reads[node_of[i]][i]) {
        RC_ASSERT(samples[node] == part);
      }
    }
  }
}

TEST(NodesByFrequencyTest, IsTheSameForAllRanksWhereverTheyStand) {
  NextUseOptions job = placed_job(300, 6, 4);
  const auto first = *nodes_by_frequency(job, 3);
  job.ranks = {4, 2, 6};
  job.epoch = 2;
  job.start = 24;

  EXPECT_EQ(*nodes_by_frequency(job, 3), first);
}

TEST(NodesByFrequencyTest, RefusesWhatTakesTooMuchMemory) {
  const auto node_of =
      nodes_by_frequency(placed_job(std::uint64_t{1} << 30, 8, 1), 8);

  ASSERT_FALSE(node_of.has_value());
  EXPECT_EQ(node_of.error().code(), ErrorCode::kResourceExhausted);
  EXPECT_NE(node_of.error().message().find("by key"), std::string::npos);
}

TEST(PlacementTest, IsNamedAsItIsRead) {
  for (const std::string_view name : placement_names()) {
    EXPECT_EQ(to_string(*parse_placement(name)), name);
  }
  EXPECT_FALSE(parse_placement("luck"));
}

TEST(PlacementTest, SaysOfEachNodeAndTierWhatItMayHold) {
  const auto node_of = *first_epoch_nodes(placed_job(100, 4, 1), 2);
  const auto on_second = planned_on(node_of, 1);
  const auto tier_of = std::make_shared<const std::vector<std::uint8_t>>(
      *place_by_frequency(placed_job(100, 2, 5), {10, 20}, {1}));
  std::vector<std::uint64_t> in_tier(2);

  for (SampleId id{0}; id.value < 100; ++id.value) {
    EXPECT_EQ(on_second(id), node_of[id.value] == 1);
    for (std::size_t tier : {0, 1}) {
      const bool is_in = planned_in(tier_of, tier)(id);
      EXPECT_EQ(is_in, (*tier_of)[id.value] == tier);
      if (is_in) ++in_tier[tier];
    }
  }

  EXPECT_EQ(in_tier, (std::vector<std::uint64_t>{10, 20}));
}

}  // namespace
}  // namespace leat
