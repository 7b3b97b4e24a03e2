#include "leat/engine/loader/kept_epochs.h"

#include <gtest/gtest.h>

namespace leat {
namespace {

TEST(KeptEpochsTest, DropsTheOldestAndCountsItOn) {
  KeptEpochs epochs;
  EXPECT_TRUE(epochs.empty());
  for (std::uint64_t i = 0; i < KeptEpochs::kMost + 3; ++i) {
    epochs.begin(i);
    epochs.last().samples = 10;
    epochs.last().wait = Nanoseconds(i);
    epochs.last().stalls[Stall::kStorage] = Nanoseconds(i);
  }

  ASSERT_EQ(epochs.all().size(), KeptEpochs::kMost);
  EXPECT_EQ(epochs.all().front().epoch, 3u);
  EXPECT_EQ(epochs.last().epoch, KeptEpochs::kMost + 2);

  LoaderTotals totals;
  epochs.add_to(totals);
  const std::uint64_t count = KeptEpochs::kMost + 3;
  EXPECT_EQ(totals.epochs, count);
  EXPECT_EQ(totals.samples, 10 * count);
  EXPECT_EQ(totals.wait, Nanoseconds(count * (count - 1) / 2));
  EXPECT_EQ(totals.stalls[Stall::kStorage], totals.wait);
}

}  // namespace
}  // namespace leat
