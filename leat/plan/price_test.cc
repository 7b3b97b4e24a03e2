#include "leat/plan/price.h"

#include <gtest/gtest.h>

#include "leat/plan/simulator.h"

namespace leat {
namespace {

const Prices kPrices{.get_per_1000 = 0.4,
                     .list_per_1000 = 5,
                     .put_per_1000 = 5,
                     .nat_per_gb = 0.045,
                     .zone_per_gb = 0.02};

SimulationReport two_epochs() {
  return {.epochs = {{.gets = 3000,
                      .get_bytes = 2000000000,
                      .peer_bytes = 1000000000,
                      .seconds = 1800},
                     {.gets = 1000, .seconds = 1800}}};
}

TEST(PriceTest, ARunIsRequestsTrafficAndHours) {
  const SimulationOptions options{.samples = 2500, .ranks = 2, .nodes = 2};

  const RunCost cost = cost_of(
      two_epochs(), options, kPrices,
      {.node_per_hour = 3, .is_behind_nat = true, .are_peers_in_zones = true});

  EXPECT_DOUBLE_EQ(cost.gets, 1.6);
  EXPECT_DOUBLE_EQ(cost.lists, 0.015);  // Three pages.
  EXPECT_DOUBLE_EQ(cost.nat, 0.09);
  EXPECT_DOUBLE_EQ(cost.peers, 0.02);
  EXPECT_DOUBLE_EQ(cost.hours, 6);
  EXPECT_DOUBLE_EQ(cost.total(), 1.6 + 0.015 + 0.09 + 0.02 + 6);
}

TEST(PriceTest, AListingNamesObjects) {
  const SimulationOptions options{.samples = 250000, .objects = 1001};

  EXPECT_DOUBLE_EQ(cost_of(two_epochs(), options, kPrices, {}).lists, 0.01);
}

TEST(PriceTest, WithinAZoneAndWithoutANatTrafficIsFree) {
  const SimulationOptions options{.samples = 1, .ranks = 2, .nodes = 2};

  const RunCost cost = cost_of(two_epochs(), options, kPrices, {});

  EXPECT_EQ(cost.nat, 0);
  EXPECT_EQ(cost.peers, 0);
}

TEST(PriceTest, SomeRanksAreCountedUpToAll) {
  const SimulationOptions options{
      .samples = 1, .ranks = 8, .nodes = 2, .only_ranks = 4};

  EXPECT_DOUBLE_EQ(cost_of(two_epochs(), options, kPrices, {}).gets, 3.2);
}

TEST(PriceTest, PackingPaysWhenItsRequestsAreSaved) {
  // 1,000,000 samples of 100 KB: 100 GB in pieces of 10 MB, shards of 100 MB.
  const PackingCost cost =
      cost_of_packing(1000000, 100000000000, 100000000, 10000000, kPrices);

  EXPECT_EQ(cost.gets_an_epoch, 10000u);
  EXPECT_DOUBLE_EQ(cost.once, 400 + 5);
  EXPECT_DOUBLE_EQ(cost.saved_an_epoch, 396);
  EXPECT_EQ(cost.epochs_to_pay, 2u);
}

TEST(PriceTest, PackingWhatIsLargerThanAPieceNeverPays) {
  const PackingCost cost =
      cost_of_packing(10, 1000000000, 100000000, 10000000, kPrices);

  EXPECT_EQ(cost.gets_an_epoch, 10u);
  EXPECT_EQ(cost.epochs_to_pay, 0u);
}

}  // namespace
}  // namespace leat
