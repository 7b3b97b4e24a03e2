#include "leat/engine/job_shards.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

/// The board of a job whose store is lost.
class LostBoard final : public ScanBoard {
 public:
  Rank rank() const override { return {.rank = 0, .world_size = 4}; }
  std::string begin(std::string_view) override { return "o"; }
  void end(const std::string&, std::size_t) override {}
  Result<bool> claim(const std::string&, std::string_view) override {
    return lost();
  }
  Result<bool> put(const std::string&, std::string_view) override {
    return lost();
  }
  Result<std::optional<std::string>> get(const std::string&) override {
    return lost();
  }
  Result<std::optional<std::string>> text(const std::string&) override {
    return lost();
  }

 private:
  static Error lost() { return Error(ErrorCode::kUnavailable, "lost"); }
};

/// Twelve shards, of which 0, 4 and 8 are this rank's.
class JobShardsTest : public ::testing::Test {
 protected:
  using Numbers = std::vector<std::size_t>;

  Result<void> scan_left(std::span<const std::size_t> left,
                         const TakeShard& take) {
    asked_.emplace_back(left.begin(), left.end());
    for (std::size_t place = 0; place < left.size(); ++place) {
      if (left[place] == damaged_) {
        return Error(ErrorCode::kCorrupt, "damaged");
      }
      const std::string name = std::to_string(left[place]);
      const Member member{.name = name, .offset = 0, .size_bytes = 1};
      LEAT_TRY_VOID(take(place, {.members = {member}, .note = ""}));
    }
    return {};
  }

  std::size_t damaged_ = 12;
  std::vector<Numbers> asked_;
  JobScan job_{std::make_shared<LostBoard>(), "p"};
  JobShards shards_{
      job_, 12,
      [](const TakeShard&, const std::stop_token&) { return Result<void>(); },
      [this](std::span<const std::size_t> left, const TakeShard& take,
             const std::stop_token&) { return scan_left(left, take); }};
};

TEST_F(JobShardsTest, ShardsThatNobodyTellsAreScannedAtOnce) {
  for (const std::size_t shard : {1, 2, 3, 5, 6, 7, 9, 10, 11}) {
    const auto scanned = shards_.take(shard, {});
    ASSERT_TRUE(scanned) << shard;
    EXPECT_EQ(scanned->members[0].name, std::to_string(shard));
  }
  EXPECT_EQ(asked_, std::vector<Numbers>({{1, 2, 3, 5, 6, 7, 9, 10, 11}}));
}

TEST_F(JobShardsTest, TheErrorOfAShardWaitsForItsTurn) {
  damaged_ = 5;
  EXPECT_TRUE(shards_.take(1, {}));
  EXPECT_TRUE(shards_.take(2, {}));
  EXPECT_TRUE(shards_.take(3, {}));
  EXPECT_EQ(shards_.take(5, {}).error().code(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace leat
