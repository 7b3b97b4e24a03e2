#include "leat/cli/simulation_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "leat/engine/prices.h"

namespace leat {
namespace {

using ::testing::HasSubstr;

constexpr const char* kWhole = R"(
[[simulation]]
name = "belady on two nodes"
samples = 1000
sample_bytes = "100KB"
shuffle = "none"
seed = 7
global_batch_size = 40
tail = "drop"
locality = "sticky"
world_size = 4
nodes = 2
epochs = 3
scope = "rank"
only_ranks = 1
tiers = [{policy = "belady", capacity = "1MB"}, {policy = "windowed_belady", items = 5, window = 90}]
peers = {memory = "2MB", servers = 2}
times = {compute = "1s", get = "55ms", peer = "1ms", hit = "10us", bytes_per_second = "1GB", store_bytes_per_second = "2GB", peer_bytes_per_second = "3GB", max_in_flight = 8, prefetch_steps = 3}
billing = {provider = "s3", get_per_1000 = 0.5, node_per_hour = 2, nat = true, peers_in_zones = true}

[[deli]]
samples = 300
nodes = 3
epochs = 2
seed = 1
fetch_size = 10
queue_threshold = 5
items = 20
batch_size = 8
compute = "6s"
get = "57ms"
hit = "2ms"
fetch = "8s"
fetch_sample = "2ms"

[[solar]]
samples = 300
seed = 2
global_batch_size = 30
nodes = 3
epochs = 4
items = 50
dealing = "unequal"
epoch_order = "fewest_loads"
)";

std::string error_of(const std::string& text) {
  const auto file = parse_simulation_file(text, "jobs.toml");
  return file.has_value() ? std::string() : file.error().message();
}

TEST(SimulationFileTest, EveryKeyIsRead) {
  const auto file = parse_simulation_file(kWhole, "jobs.toml");
  ASSERT_TRUE(file.has_value()) << file.error().message();

  const NamedSimulation& simulation = file->simulations.at(0);
  const SimulationOptions& job = simulation.options;
  EXPECT_EQ(simulation.name, "belady on two nodes");
  EXPECT_EQ(job.samples, 1000u);
  EXPECT_EQ(job.sizes, std::vector<std::uint64_t>{100000});
  EXPECT_EQ(job.order.shuffle, Shuffle::kNone);
  EXPECT_EQ(job.order.seed, 7u);
  EXPECT_EQ(job.global_batch, 40u);
  EXPECT_EQ(job.tail, Tail::kDrop);
  EXPECT_EQ(job.locality, Locality::kSticky);
  EXPECT_EQ(job.ranks, 4u);
  EXPECT_EQ(job.nodes, 2u);
  EXPECT_EQ(job.epochs, 3u);
  EXPECT_EQ(job.scope, CacheScope::kRank);
  EXPECT_EQ(job.only_ranks, 1u);
  ASSERT_EQ(job.tiers.size(), 2u);
  EXPECT_EQ(job.tiers[0].capacity, 1000000u);
  EXPECT_EQ(job.tiers[1].unit, CapacityUnit::kItems);
  EXPECT_EQ(job.tiers[1].window, 90u);
  ASSERT_TRUE(job.peer_memory.has_value());
  EXPECT_EQ(job.peer_memory->bytes, 2000000u);
  EXPECT_EQ(job.peer_memory->servers, 2u);
  ASSERT_TRUE(job.times.has_value());
  EXPECT_DOUBLE_EQ(job.times->get_seconds, 0.055);
  EXPECT_DOUBLE_EQ(job.times->bytes_per_second, 1e9);
  EXPECT_DOUBLE_EQ(job.times->store_bytes_per_second, 2e9);
  EXPECT_DOUBLE_EQ(job.times->peer_bytes_per_second, 3e9);
  EXPECT_EQ(job.times->max_in_flight, 8u);
  EXPECT_EQ(job.times->prefetch_steps, 3u);
  EXPECT_DOUBLE_EQ(simulation.prices.get_per_1000, 0.5);
  EXPECT_GT(simulation.prices.list_per_1000, 0);  // The provider's.
  EXPECT_TRUE(simulation.billing.is_behind_nat);
  const NamedDeli& deli = file->deli.at(0);
  EXPECT_EQ(deli.name, "deli 1");
  EXPECT_EQ(deli.options.queue_threshold, 5u);
  EXPECT_DOUBLE_EQ(deli.options.fetch_sample_seconds, 0.002);
  const SolarOptions& solar = file->solar.at(0).options;
  EXPECT_EQ(solar.samples, 300u);
  EXPECT_EQ(solar.seed, 2u);
  EXPECT_EQ(solar.global_batch, 30u);
  EXPECT_EQ(solar.nodes, 3u);
  EXPECT_EQ(solar.epochs, 4u);
  EXPECT_EQ(solar.capacity_items, 50u);
  EXPECT_EQ(solar.dealing, Dealing::kBalanced);
  EXPECT_EQ(solar.epoch_order, SolarOptions::EpochOrderChoice::kFewestLoads);
}

TEST(SimulationFileTest, AListOfSizesBeginsAnewAtItsEnd) {
  const auto file = parse_simulation_file(
      "[[simulation]]\nsamples = 5\nglobal_batch_size = 1\nepochs = 1\n"
      "sample_bytes = [10, \"2KB\"]\n",
      "jobs.toml");

  ASSERT_TRUE(file.has_value()) << file.error().message();
  EXPECT_EQ(file->simulations[0].options.sizes,
            (std::vector<std::uint64_t>{10, 2000, 10, 2000, 10}));
}

TEST(SimulationFileTest, ABlockShuffleIsThatOfItsBlocks) {
  const auto file = parse_simulation_file(
      "[[simulation]]\nsamples = 25\nglobal_batch_size = 1\nepochs = 1\n"
      "shuffle = \"block\"\nblock_samples = 10\nshuffle_window = 1\n",
      "jobs.toml");
  ASSERT_TRUE(file.has_value()) << file.error().message();

  const SimulationOptions& job = file->simulations[0].options;
  ASSERT_NE(job.blocks, nullptr);
  ASSERT_EQ(job.blocks->blocks(), 3u);
  EXPECT_EQ(job.blocks->first_sample(1), 10u);
  EXPECT_EQ(job.blocks->first_sample(2), 20u);
  // A window of one block: its samples stand side by side.
  const EpochOrder order(job.samples, job.order, job.blocks, 0);
  for (std::uint64_t block = 0; block < 3; ++block) {
    const PositionRun run = order.window_of(block);
    for (std::uint64_t p = run.begin; p < run.end; ++p) {
      EXPECT_EQ(job.blocks->block_of(order.at(p)), block);
    }
  }
  EXPECT_TRUE(simulate(job).has_value());
}

TEST(SimulationFileTest, MistakesSayWhichWhereAndWhatElse) {
  const std::string job =
      "[[simulation]]\nsamples = 10\nglobal_batch_size = 2\nepochs = 1\n";

  EXPECT_EQ(error_of(job), "");
  EXPECT_THAT(error_of("x = ["), HasSubstr("jobs.toml (line 1) is not TOML"));
  // toml++ is undefined on U+FE69 and its like; they may stand in comments.
  for (const char* text :
       {"# \u00e9\nx = \"\\u00e9\"\n\ufe69", "# \ufe69\n\nx = \"\u00e9\"",
        "x = 1\n# '\n1=1\x12\"\ufdbf\x10="}) {
    EXPECT_THAT(error_of(text), HasSubstr("(line 3) has a character beyond"));
  }
  EXPECT_THAT(error_of("# \ufe69 \u00e9\nx = ["),
              HasSubstr("(line 2) is not TOML"));
  EXPECT_THAT(error_of(""),
              HasSubstr("no [[simulation]], [[break_even]], [[deli]] "
                        "or [[solar]]"));
  EXPECT_THAT(error_of("[simulation]\n"),
              HasSubstr("must be a list of tables"));
  EXPECT_THAT(error_of("[[simulation]]\nepochs = 1\n"),
              HasSubstr("simulation 1 (line 1): samples is missing"));
  EXPECT_THAT(error_of(job + "sampels = 3\n"),
              HasSubstr("simulation 1 (line 5): sampels is unknown: there are "
                        "billing, epochs, global_batch_size"));
  EXPECT_THAT(error_of(job + "nodes = -1\n"),
              HasSubstr("nodes must be a whole number from 1 to"));
  EXPECT_THAT(error_of(job + "nodes = 1.5\n"), HasSubstr("whole number"));
  EXPECT_THAT(error_of(job + "nodes = 99999999999\n"), HasSubstr("from 1 to"));
  EXPECT_THAT(error_of(job + "sample_bytes = \"7 parsecs\"\n"),
              HasSubstr("sample_bytes is no size"));
  EXPECT_THAT(error_of(job + "sample_bytes = []\n"),
              HasSubstr("sample_bytes is an empty list"));
  EXPECT_THAT(error_of(job + "sample_bytes = [1, -1]\n"),
              HasSubstr("sample_bytes must be a number of bytes"));
  EXPECT_THAT(error_of(job + "sample_bytes = [1,2,3,4,5,6,7,8,9,10,11]\n"),
              HasSubstr("lists 11 sizes for 10 samples"));
  EXPECT_THAT(error_of("[[simulation]]\nsamples = 4000000000\n"
                       "global_batch_size = 2\nepochs = 1\n"
                       "sample_bytes = [1, 2]\n"),
              HasSubstr("one size alone for more than"));
  EXPECT_THAT(error_of(job + "shuffle_window = 3\n"),
              HasSubstr("shuffle_window is for shuffle = \"block\""));
  EXPECT_THAT(error_of(job + "shuffle = \"block\"\n"),
              HasSubstr("block_samples is missing"));
  EXPECT_THAT(error_of("[[simulation]]\nsamples = 4000000000\n"
                       "global_batch_size = 2\nepochs = 1\n"
                       "shuffle = \"block\"\nblock_samples = 9\n"),
              HasSubstr("more than 16777216 samples"));
  EXPECT_THAT(error_of(job + "scope = \"moon\"\n"),
              HasSubstr("take one of node, rank, peers"));
  EXPECT_THAT(error_of(job + "tiers = [1]\n"), HasSubstr("list of tables"));
  EXPECT_THAT(error_of(job + "tiers = [{policy = \"mru\", items = 1}]\n"),
              HasSubstr("simulation 1, tier 1 (line 5): policy is \"mru\""));
  EXPECT_THAT(error_of(job + "tiers = [{items = 1, capacity = 1}]\n"),
              HasSubstr("give one of them"));
  EXPECT_THAT(error_of(job + "times = {compute = \"1s\"}\n"),
              HasSubstr("get is missing"));
  EXPECT_THAT(error_of(job + "times = {compute = 1, get = \"1s\"}\n"),
              HasSubstr("must be a duration such as"));
  EXPECT_THAT(error_of(job + "billing = {provider = \"ibm\"}\n"),
              HasSubstr("simulation 1, billing: prices.toml: no prices of a "
                        "provider \"ibm\": there are gcs, s3"));
  EXPECT_THAT(error_of(job + "billing = {node_per_hour = nan}\n"),
              HasSubstr("at least 0"));
  EXPECT_THAT(error_of(std::string(2 << 20, '#')), HasSubstr("not read"));
}

TEST(SimulationFileTest, ALoadersRequestsInFlightAreTheDefault) {
  const auto file = parse_simulation_file(
      "[[simulation]]\nsamples = 1\nglobal_batch_size = 1\nepochs = 1\n"
      "times = {compute = \"1s\", get = \"1s\"}\n",
      "jobs.toml");
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->simulations[0].options.times->max_in_flight,
            kDefaultInFlight);
}

TEST(SimulationFileTest, ShippedPricesAreThereAndComplete) {
  for (const char* provider : {"s3", "gcs"}) {
    const auto prices = prices_of(provider);
    ASSERT_TRUE(prices.has_value()) << prices.error().message();
    EXPECT_GT(prices->get_per_1000, 0) << provider;
    EXPECT_GT(prices->nat_per_gb, 0) << provider;
    EXPECT_GT(prices->gets_per_second, 0) << provider;
    EXPECT_NE(prices->as_of, "") << provider;
  }
}

}  // namespace
}  // namespace leat
