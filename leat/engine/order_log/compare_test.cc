// Proofs and findings, from logs that are written here.
#include "leat/engine/order_log/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <numeric>

#include "leat/base/hash.h"
#include "leat/engine/order_log/writer.h"

namespace leat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t kSamples = 60;

/// A shuffle of its own for each seed and epoch.
std::vector<SampleId> order_of(std::uint64_t seed, std::uint64_t epoch) {
  std::vector<SampleId> ids(kSamples);
  for (std::uint64_t i = 0; i < kSamples; ++i) ids[i].value = i;
  std::ranges::sort(ids, {}, [&](SampleId id) {
    return mix64(seed * 1000 + epoch * 100 + id.value);
  });
  return ids;
}

class OrderProofTest : public ::testing::Test {
 protected:
  OrderProofTest() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "leat-proof-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~OrderProofTest() override { std::filesystem::remove_all(folder_); }

  struct Session {
    std::uint32_t world_size = 1;
    std::uint64_t global_batch = 10;
    OrderPlace from = {};
    OrderPlace to = {.epoch = 2, .at = 0};
    std::uint64_t seed = 7;
    std::string shuffle = "full";
    std::string data = "digest";
  };
  /// Changes a batch, or drops it by clearing its ids.
  using Change = std::function<void(OrderLogBatch&, std::uint32_t rank)>;

  /// Logs of a session, as a loader would write them.
  void log(OrderRunFiles& run, const Session& session,
           const Change& change = nullptr) {
    ++opened_;
    for (std::uint32_t rank = 0; rank < session.world_size; ++rank) {
      auto log = OrderLogWriter::open(
          (folder_ / "run.order").string(),
          {.rank = {.rank = rank, .world_size = session.world_size},
           .data = session.data,
           .shuffle = session.shuffle,
           .seed = session.seed,
           .global_batch = session.global_batch,
           .tail = "keep",
           .samples = kSamples,
           .opened_at = opened_});
      ASSERT_TRUE(log) << log.error().message();
      run.files.push_back((*log)->path());
      add_batches(**log, session, rank, change);
    }
  }

  static void add_batches(OrderLogWriter& log, const Session& session,
                          std::uint32_t rank, const Change& change) {
    OrderPlace place = session.from;
    while (place < session.to) {
      const std::vector<SampleId> ids = order_of(session.seed, place.epoch);
      const std::uint64_t to =
          std::min(kSamples, place.at + session.global_batch);
      const std::uint64_t each = (to - place.at) / session.world_size;
      OrderLogBatch batch{.epoch = place.epoch, .from = place.at, .to = to};
      const auto first =
          ids.begin() + static_cast<std::ptrdiff_t>(place.at + rank * each);
      batch.ids.assign(first, first + static_cast<std::ptrdiff_t>(each));
      if (change) change(batch, rank);
      if (!batch.ids.empty()) log.add(batch);
      place.at = to;
      if (place.at < kSamples) continue;
      log.add(OrderLogEnd{.epoch = place.epoch, .at = to, .samples = kSamples});
      place = {.epoch = place.epoch + 1, .at = 0};
    }
  }

  OrderVerdict compare(bool is_strict = true) {
    auto verdict = compare_runs(a_, b_, is_strict, {});
    EXPECT_TRUE(verdict) << verdict.error().message();
    return verdict ? *verdict : OrderVerdict();
  }
  OrderVerdict verify() {
    auto verdict = verify_run(a_, {});
    EXPECT_TRUE(verdict) << verdict.error().message();
    return verdict ? *verdict : OrderVerdict();
  }

  std::filesystem::path folder_;
  std::uint64_t opened_ = 0;
  OrderRunFiles a_{.name = "A", .files = {}};
  OrderRunFiles b_{.name = "B", .files = {}};
};

TEST_F(OrderProofTest, EachSampleCameOnce) {
  log(a_, {});

  const OrderVerdict verdict = verify();

  EXPECT_EQ(verdict.finding, std::nullopt);
  ASSERT_EQ(verdict.epochs.size(), 2u);
  EXPECT_EQ(to_string(verdict.epochs[1]),
            "6 steps, 60 samples: each of 60 once");
}

TEST_F(OrderProofTest, TellsHowMuchOfTheLogsItHasReadTwice) {
  log(a_, {.world_size = 2});
  log(b_, {.world_size = 2});
  std::uint64_t bytes = 0;
  for (const std::string& file : a_.files) {
    bytes += std::filesystem::file_size(file);
  }

  std::uint64_t of_one = 0;
  ASSERT_TRUE(verify_run(a_, {}, [&](std::uint64_t read) { of_one += read; }));
  std::uint64_t of_two = 0;
  ASSERT_TRUE(compare_runs(a_, b_, true, {},
                           [&](std::uint64_t read) { of_two += read; }));

  EXPECT_GT(of_one, bytes);
  EXPECT_LE(of_one, 2 * bytes);
  EXPECT_EQ(of_two, 2 * of_one);
}

TEST_F(OrderProofTest, FourRanksSawTheStreamOfOne) {
  log(a_, {.global_batch = 20});
  log(b_, {.world_size = 4, .global_batch = 20});

  const OrderVerdict verdict = compare();

  EXPECT_EQ(verdict.finding, std::nullopt);
  EXPECT_FALSE(verdict.is_order_of_ranks);
  EXPECT_THAT(verdict.runs[1].world_sizes, ElementsAre(4u));
  EXPECT_EQ(verify_run(b_, {})->digest, verdict.digest);
}

TEST_F(OrderProofTest, AStoppedRunThatWentOnWithOtherRanksSawTheSame) {
  log(a_, {.global_batch = 20});
  log(b_, {.global_batch = 20, .to = {.epoch = 0, .at = 40}});
  log(b_,
      {.world_size = 4, .global_batch = 20, .from = {.epoch = 0, .at = 40}});

  const OrderVerdict verdict = compare();

  EXPECT_EQ(verdict.finding, std::nullopt);
  EXPECT_THAT(verdict.runs[1].world_sizes, ElementsAre(1u, 4u));
}

TEST_F(OrderProofTest, StepsOfOtherSizesAreComparedWhereTheyMeet) {
  log(a_, {.global_batch = 10});
  log(b_, {.global_batch = 15});
  EXPECT_EQ(compare().finding, std::nullopt);

  OrderRunFiles other{.name = "C", .files = {}};
  log(other, {.global_batch = 15}, [](OrderLogBatch& batch, std::uint32_t) {
    if (batch.epoch == 1 && batch.from == 30)
      std::swap(batch.ids[0], batch.ids[1]);
    if (batch.epoch == 1 && batch.from == 45) batch.ids[0].value = 60;
  });
  const auto verdict = compare_runs(a_, other, true, {});
  ASSERT_TRUE(verdict);
  EXPECT_THAT(verdict->finding.value_or(""),
              HasSubstr("steps 3 to 5 of epoch 1 (positions 30 to 60); only A "
                        "has samples"));
  EXPECT_THAT(verdict->finding.value_or(""),
              HasSubstr("only C has samples 60"));
}

TEST_F(OrderProofTest, NamesTheFirstDifferenceOfTwoSeeds) {
  log(a_, {});
  log(b_, {.seed = 8});

  const OrderVerdict verdict = compare();

  ASSERT_TRUE(verdict.finding);
  EXPECT_THAT(verdict.finding.value_or(""),
              HasSubstr("the first difference is in step 0 of epoch 0 "
                        "(positions 0 to 10); only A has samples "));
}

TEST_F(OrderProofTest, NamesTheRankAndTheRowOfAnotherOrder) {
  log(a_, {.world_size = 2});
  log(b_, {.world_size = 2}, [](OrderLogBatch& batch, std::uint32_t rank) {
    if (rank == 1 && batch.from == 20) std::swap(batch.ids[2], batch.ids[4]);
  });

  EXPECT_THAT(compare().finding.value_or(""),
              HasSubstr("step 2 of epoch 0 (positions 20 to 30), which has the "
                        "same samples in another order: rank 1, row 2"));
  const OrderVerdict sets = compare(/*is_strict=*/false);
  EXPECT_EQ(sets.finding, std::nullopt);
  EXPECT_FALSE(sets.is_order_of_ranks);
}

TEST_F(OrderProofTest, NamesTheRunThatEndsEarlier) {
  log(a_, {});
  log(b_, {.to = {.epoch = 1, .at = 30}});

  EXPECT_THAT(compare().finding.value_or(""),
              HasSubstr("B ends where A goes on: with step 3 of epoch 1"));
}

TEST_F(OrderProofTest, NumbersOfOtherDataAreOtherSamples) {
  log(a_, {});
  log(b_, {.data = "another"});

  EXPECT_THAT(compare().finding.value_or(""),
              HasSubstr("the numbers name other samples"));
}

TEST_F(OrderProofTest, NamesASampleThatCameTwice) {
  log(a_, {}, [](OrderLogBatch& batch, std::uint32_t) {
    if (batch.from == 40) batch.ids[3] = order_of(7, batch.epoch)[2];
  });

  EXPECT_THAT(
      verify().finding.value_or(""),
      HasSubstr("came twice in epoch 0: again on rank 0, row 3, in step "
                "4 of epoch 0 (positions 40 to 50)"));
}

TEST_F(OrderProofTest, NamesABatchThatCameTwice) {
  const std::string path = (folder_ / "twice.order").string();
  {
    auto log = OrderLogWriter::open(path, {.shuffle = "full"});
    (*log)->add(OrderLogBatch{.to = 2, .ids = {{1}, {2}}});
    (*log)->add(OrderLogBatch{.from = 2, .to = 4, .ids = {{3}, {4}}});
    (*log)->add(OrderLogBatch{.from = 2, .to = 4, .ids = {{3}, {4}}});
  }
  a_.files = {path};

  EXPECT_THAT(verify().finding.value_or(""),
              HasSubstr("rank 0 delivered again positions 2 to 4 of epoch 0"));
}

TEST_F(OrderProofTest, NamesAStepThatARankLeftOut) {
  log(a_, {.world_size = 2}, [](OrderLogBatch& batch, std::uint32_t rank) {
    if (rank == 1 && batch.from == 20) batch.ids.clear();
  });

  EXPECT_THAT(verify().finding.value_or(""),
              HasSubstr("rank 1 went on with positions 30 "
                        "to 40 of epoch 0"));
}

TEST_F(OrderProofTest, NamesAStepWithoutAllOfItsSamples) {
  log(a_, {.world_size = 2}, [](OrderLogBatch& batch, std::uint32_t rank) {
    if (rank == 1 && batch.from == 20) batch.ids.pop_back();
  });

  EXPECT_THAT(verify().finding.value_or(""),
              HasSubstr("step 2 of epoch 0 (positions 20 to "
                        "30) has 10 samples, and 9 came"));
}

TEST_F(OrderProofTest, NamesARankWithoutALog) {
  log(a_, {.world_size = 2});
  a_.files.pop_back();

  EXPECT_THAT(verify().finding.value_or(""),
              HasSubstr("rank 1 of 2 has no log of step 0 of epoch 0"));
}

TEST_F(OrderProofTest, NamesPositionsThatNoLogHas) {
  log(a_, {.to = {.epoch = 0, .at = 20}});
  log(a_, {.from = {.epoch = 0, .at = 30}});

  EXPECT_THAT(verify().finding.value_or(""),
              HasSubstr("no log has what comes after position 20 of epoch 0"));
}

TEST_F(OrderProofTest, ACheckpointReplacesWhatCameAfterIt) {
  log(a_, {.world_size = 2, .to = {.epoch = 0, .at = 50}});
  log(a_, {.world_size = 2, .from = {.epoch = 0, .at = 30}});
  log(b_, {.world_size = 2});

  const OrderVerdict verdict = compare();

  EXPECT_EQ(verdict.finding, std::nullopt);
  EXPECT_TRUE(verdict.is_order_of_ranks);
  EXPECT_THAT(verdict.runs[0].notes,
              ElementsAre(HasSubstr("went back to position 30 of epoch 0 from "
                                    "position 50")));
}

TEST_F(OrderProofTest, AKilledRunMayEndWithinAStep) {
  log(a_, {.world_size = 2, .to = {.epoch = 0, .at = 40}},
      [](OrderLogBatch& batch, std::uint32_t rank) {
        if (rank == 1 && batch.from == 30) batch.ids.clear();
      });

  const OrderVerdict verdict = verify();

  EXPECT_EQ(verdict.finding, std::nullopt);
  EXPECT_EQ(verdict.epochs[0].steps, 3u);
  EXPECT_THAT(verdict.runs[0].notes,
              ElementsAre(HasSubstr("step 3 of epoch 0 (positions 30 to 40) "
                                    "came on some ranks only")));
}

TEST_F(OrderProofTest, NamesARankThatEndsStepsBeforeTheOthers) {
  log(a_, {.world_size = 2, .to = {.epoch = 0, .at = 50}},
      [](OrderLogBatch& batch, std::uint32_t rank) {
        if (rank == 1 && batch.from >= 30) batch.ids.clear();
      });

  EXPECT_THAT(verify().finding.value_or(""),
              HasSubstr("rank 1 of 2 has no log of step 3 of epoch 0"));
}

TEST_F(OrderProofTest, PaddingAndSubstitutesAreNoSecondTime) {
  log(a_, {.global_batch = 60, .to = {.epoch = 1, .at = 0}},
      [](OrderLogBatch& batch, std::uint32_t) {
        batch.ids.push_back(batch.ids[0]);
        batch.padding = {60};
        batch.ids[5] = batch.ids[6];
        batch.substitutes = {5};
      });

  const OrderVerdict verdict = verify();

  EXPECT_EQ(verdict.finding, std::nullopt);
  EXPECT_EQ(to_string(verdict.epochs[0]),
            "1 steps, 60 samples: 59 different ones, since 1 replace bad ones; "
            "1 pad");
}

TEST_F(OrderProofTest, NamesASampleThatNeverCame) {
  const std::string path = (folder_ / "short.order").string();
  {
    auto log = OrderLogWriter::open(
        path, {.shuffle = "full", .tail = "keep", .samples = 3});
    (*log)->add(OrderLogBatch{.to = 2, .ids = {{0}, {2}}});
    (*log)->add(OrderLogEnd{.at = 2, .samples = 3});
  }
  a_.files = {path};

  EXPECT_THAT(
      verify().finding.value_or(""),
      HasSubstr("1 of 3 samples never came in epoch 0: the first is 1"));
}

TEST_F(OrderProofTest, DrawnSamplesMayComeAgain) {
  log(a_, {.shuffle = "drawn"},
      [](OrderLogBatch& batch, std::uint32_t) { batch.ids[1] = batch.ids[0]; });

  const OrderVerdict verdict = verify();

  EXPECT_EQ(verdict.finding, std::nullopt);
  EXPECT_EQ(to_string(verdict.epochs[0]),
            "6 steps, 60 samples: 54 different ones, as drawn");
}

TEST_F(OrderProofTest, LogsOfTwoRunsAreNotOne) {
  log(a_, {});
  log(a_, {.seed = 8});

  EXPECT_THAT(verify().finding.value_or(""), HasSubstr("not logs of one run"));
}

}  // namespace
}  // namespace leat
