#include "leat/tune/stage_allocation.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <vector>

namespace leat {
namespace {

TEST(StageAllocation, DividesCoresByWhatStagesTake) {
  const std::vector<Stage> stages = {{.rate_per_unit = 100},
                                     {.rate_per_unit = 300}};

  const StageAllocation found = allocate_stages(stages, 4);

  EXPECT_DOUBLE_EQ(found.samples_per_second, 300);
  EXPECT_DOUBLE_EQ(found.units[0], 3);
  EXPECT_DOUBLE_EQ(found.units[1], 1);
}

TEST(StageAllocation, ASequentialStageBoundsAll) {
  const std::vector<Stage> stages = {{.rate_per_unit = 100},
                                     {.rate_per_unit = 50, .most_units = 1}};

  const StageAllocation found = allocate_stages(stages, 16);

  EXPECT_DOUBLE_EQ(found.samples_per_second, 50);
  EXPECT_DOUBLE_EQ(found.units[0], 0.5);
}

TEST(StageAllocation, RequestsTakeNoCores) {
  const std::vector<Stage> stages = {
      {.rate_per_unit = 100},
      {.rate_per_unit = 10, .most_units = 64, .takes_cores = false}};

  const StageAllocation found = allocate_stages(stages, 2);

  EXPECT_DOUBLE_EQ(found.samples_per_second, 200);
  EXPECT_DOUBLE_EQ(found.units[1], 20);
}

TEST(StageAllocation, NothingThatBoundsIsNoUnits) {
  const std::vector<Stage> stages = {{}};

  const StageAllocation found = allocate_stages(stages, 2);

  EXPECT_TRUE(std::isinf(found.samples_per_second));
  EXPECT_EQ(found.units, std::vector<double>{0});
}

// The program itself, by bisection: feasible at X, not a thousandth above.
bool is_feasible(const std::vector<Stage>& stages, double cores, double speed) {
  double taken = 0;
  for (const Stage& stage : stages) {
    const double units = speed / stage.rate_per_unit;
    if (units > stage.most_units * (1 + 1e-9)) return false;
    if (stage.takes_cores) taken += units;
  }
  return taken <= cores * (1 + 1e-9);
}

RC_GTEST_PROP(StageAllocation, IsTheOptimumOfTheLinearProgram, ()) {
  const auto count = *rc::gen::inRange(1, 6);
  const double cores = *rc::gen::inRange(1, 64);
  std::vector<Stage> stages;
  for (int i = 0; i < count; ++i) {
    const int most = *rc::gen::inRange(0, 8);
    Stage stage{.rate_per_unit =
                    static_cast<double>(*rc::gen::inRange(1, 1000))};
    if (most > 0) stage.most_units = most;
    stage.takes_cores = i == 0 || *rc::gen::arbitrary<bool>();
    stages.push_back(stage);
  }

  const double speed = allocate_stages(stages, cores).samples_per_second;

  RC_ASSERT(is_feasible(stages, cores, speed));
  RC_ASSERT(!is_feasible(stages, cores, speed * 1.001));
}

}  // namespace
}  // namespace leat
