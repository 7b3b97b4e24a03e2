#include "leat/plan/next_use.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "leat/plan/permutation.h"

namespace leat {
namespace {

std::shared_ptr<const BlockMap> shards(std::uint64_t samples,
                                       std::uint64_t per_shard) {
  std::vector<SampleSpan> spans;
  spans.reserve(samples);
  for (std::uint64_t i = 0; i < samples; ++i) {
    const std::uint64_t at = i % per_shard * 100;
    spans.push_back(
        {ObjectIndex{static_cast<std::uint32_t>(i / per_shard)}, at, at + 100});
  }
  return std::make_shared<const BlockMap>(BlockMap::cut(spans, 1000));
}

/// A read of these ranks: the sample, and its position.
struct Read {
  std::uint64_t epoch = 0;
  std::uint64_t position = 0;  // Past N in the padding.
  SampleId sample;
};

/// Every read from the running epoch's start to the horizon, by walking all
/// steps of all ranks.
std::vector<Read> all_reads(const NextUseOptions& options) {
  std::vector<Read> reads;
  for (std::uint64_t epoch = options.epoch; epoch < options.end_epoch;
       ++epoch) {
    const EpochOrder order(options.samples, options.order, options.blocks,
                           epoch);
    for (std::uint32_t r = 0; r < options.ranks.count; ++r) {
      const Steps steps = *Steps::make(
          {.samples = options.samples,
           .start = epoch == options.epoch ? options.start : 0,
           .global_batch = options.global_batch,
           .rank = {options.ranks.first + r, options.ranks.world_size},
           .tail = options.tail});
      for (std::uint64_t k = 0; k < steps.count(); ++k) {
        const StepSlice slice = steps.slice(k);
        for (std::uint64_t p = slice.begin; p < slice.end; ++p) {
          reads.push_back({epoch, p, order.at(p % options.samples)});
        }
      }
    }
  }
  return reads;
}

AccessTime brute_force(const NextUseOptions& options,
                       const std::vector<Read>& reads, SampleId sample,
                       std::uint64_t epoch, std::uint64_t position) {
  AccessTime first = kNever;
  for (const Read& read : reads) {
    if (read.sample != sample) continue;
    if (read.epoch < epoch) continue;
    if (read.epoch == epoch && read.position < position) continue;
    first = std::min(first, read.epoch * options.samples +
                                std::min(read.position, options.samples - 1));
  }
  return first;
}

/// Any job: all shuffles, tails, world sizes, resumes.
NextUseOptions any_job() {
  NextUseOptions options;
  options.samples = *rc::gen::inRange<std::uint64_t>(1, 200);
  options.order.shuffle =
      *rc::gen::element(Shuffle::kNone, Shuffle::kFull, Shuffle::kBlock);
  options.order.seed = *rc::gen::arbitrary<std::uint64_t>();
  options.order.window_blocks = *rc::gen::inRange<std::uint32_t>(1, 6);
  options.blocks =
      shards(options.samples, *rc::gen::inRange<std::uint64_t>(1, 60));
  options.ranks.world_size = *rc::gen::inRange<std::uint32_t>(1, 12);
  options.ranks.first =
      *rc::gen::inRange<std::uint32_t>(0, options.ranks.world_size);
  options.ranks.count = *rc::gen::inRange<std::uint32_t>(
      1, options.ranks.world_size - options.ranks.first + 1);
  options.global_batch =
      options.ranks.world_size * *rc::gen::inRange<std::uint64_t>(1, 20);
  options.tail = *rc::gen::element(Tail::kDrop, Tail::kKeep, Tail::kPad);
  if (options.samples < options.global_batch && options.tail == Tail::kDrop) {
    options.tail = Tail::kKeep;
  }
  options.epoch = *rc::gen::inRange<std::uint64_t>(0, 3);
  options.end_epoch = options.epoch + *rc::gen::inRange<std::uint64_t>(0, 12);
  options.start = *rc::gen::inRange<std::uint64_t>(0, options.samples + 1);
  return options;
}

RC_GTEST_PROP(NextUseProperty, IsWhatWalkingEveryStepFinds, ()) {
  const NextUseOptions options = any_job();
  const std::vector<Read> reads = all_reads(options);
  NextUse next_use = *NextUse::make(options);

  std::uint64_t epoch = options.epoch;
  for (int asked = 0; asked < 40; ++asked) {
    if (*rc::gen::inRange(0, 10) == 0) ++epoch;
    const SampleId sample{*rc::gen::inRange<std::uint64_t>(0, options.samples)};
    const auto position = *rc::gen::inRange<std::uint64_t>(
        0, options.samples + options.global_batch);
    RC_ASSERT(next_use.at_or_after(sample, epoch, position) ==
              brute_force(options, reads, sample, epoch, position));
  }
}

// Acts as a cache: asks at each read for the next one of the same sample. There
// is always exactly one answer to be told again at.
RC_GTEST_PROP(NextUseProperty, ChainsFromReadToRead, ()) {
  NextUseOptions options = any_job();
  options.ranks = {0, 1, 1};
  std::vector<Read> reads = all_reads(options);
  NextUse next_use = *NextUse::make(options);

  for (std::size_t i = 0; i < reads.size(); ++i) {
    const auto again = std::find_if(
        reads.begin() + static_cast<std::ptrdiff_t>(i) + 1, reads.end(),
        [&](const Read& read) { return read.sample == reads[i].sample; });
    RC_ASSERT(next_use.at_or_after(reads[i].sample, reads[i].epoch,
                                   reads[i].position + 1) ==
              (again == reads.end()
                   ? kNever
                   : next_use.time_of(again->epoch, again->position)));
  }
}

// A policy rebuilt after load_state_dict is told the same next uses as the one
// that ran on, as long as the steps are cut alike.
RC_GTEST_PROP(NextUseProperty, AResumeAtAStepChangesNothing, ()) {
  NextUseOptions options = any_job();
  options.start = 0;
  options.end_epoch = options.epoch + 3;
  const std::uint64_t steps = options.samples / options.global_batch;
  NextUseOptions resumed = options;
  resumed.start =
      options.global_batch * *rc::gen::inRange<std::uint64_t>(0, steps + 1);
  NextUse ran_on = *NextUse::make(options);
  NextUse rebuilt = *NextUse::make(resumed);

  for (std::uint64_t id = 0; id < options.samples; ++id) {
    RC_ASSERT(rebuilt.at_or_after(SampleId{id}, options.epoch, resumed.start) ==
              ran_on.at_or_after(SampleId{id}, options.epoch, resumed.start));
  }
}

// For a block the answer is closed: the first read of its window.
RC_GTEST_PROP(NextUseProperty, ABlockIsReadWhenItsWindowIs, ()) {
  NextUseOptions options = any_job();
  options.order.shuffle = Shuffle::kBlock;
  const std::vector<Read> reads = all_reads(options);
  NextUse next_use = *NextUse::make(options);
  const auto block =
      *rc::gen::inRange<std::uint64_t>(0, options.blocks->blocks());
  const auto position = *rc::gen::inRange<std::uint64_t>(
      0, options.samples + options.global_batch);

  AccessTime expected = kNever;
  for (const Read& read : reads) {
    if (read.epoch == options.epoch && read.position < position) continue;
    const PositionRun window =
        EpochOrder(options.samples, options.order, options.blocks, read.epoch)
            .window_of(block);
    const std::uint64_t at = read.position % options.samples;
    if (at < window.begin || at >= window.end) continue;
    expected = std::min(expected, next_use.time_of(read.epoch, read.position));
  }
  RC_ASSERT(next_use.block_at_or_after(block, options.epoch, position) ==
            expected);
}

// While the rest of a stream is not known yet, a cache is told the same as once
// all is, except at the end of the dataset, where steps are cut.
RC_GTEST_PROP(NextUseProperty, APartOfAStreamIsToldWhatTheWholeIs, ()) {
  NextUseOptions whole = any_job();
  whole.samples = *rc::gen::inRange<std::uint64_t>(20, 200);
  const auto per_shard = *rc::gen::inRange<std::uint64_t>(1, 60);
  whole.blocks = shards(whole.samples, per_shard);
  whole.order.shuffle = Shuffle::kStream;
  whole.tail = Tail::kKeep;
  whole.start = 0;
  whole.end_epoch = whole.epoch + *rc::gen::inRange<std::uint64_t>(1, 5);
  whole.epoch_time = kEpochTime;
  NextUse of_whole = *NextUse::make(whole);

  // Shards [first, end) of it.
  const std::uint64_t all = (whole.samples + per_shard - 1) / per_shard;
  const auto first = *rc::gen::inRange<std::uint64_t>(0, all);
  const auto end = *rc::gen::inRange<std::uint64_t>(first + 1, all + 1);
  NextUseOptions part = whole;
  part.samples = kEpochTime;
  part.tail = Tail::kDrop;
  part.first_sample = first * per_shard;
  const std::uint64_t samples =
      std::min(end * per_shard, whole.samples) - part.first_sample;
  part.blocks = shards(samples, per_shard);
  part.order.first_block = whole.blocks->block_of(SampleId{part.first_sample});
  NextUse of_part = *NextUse::make(part);

  for (std::uint64_t block = 0; block < part.blocks->blocks(); ++block) {
    const PositionRun window =
        EpochOrder(whole.samples, whole.order, whole.blocks, whole.epoch)
            .window_of(part.order.first_block + block);
    const bool is_in_part = window.begin >= part.first_sample &&
                            window.end <= part.first_sample + samples;
    const bool is_before_tail =
        window.end + whole.global_batch <= whole.samples;
    if (!is_in_part || !is_before_tail) continue;
    for (const std::uint64_t position : {std::uint64_t{0}, window.end}) {
      RC_ASSERT(of_part.block_at_or_after(block, whole.epoch, position) ==
                of_whole.block_at_or_after(part.order.first_block + block,
                                           whole.epoch, position));
    }
    const std::uint64_t id = part.blocks->first_sample(block);
    RC_ASSERT(of_part.at_or_after(SampleId{id}, whole.epoch, window.end) ==
              of_whole.at_or_after(SampleId{part.first_sample + id},
                                   whole.epoch, window.end));
  }
  RC_ASSERT(of_part.time_of(3, 5) == of_whole.time_of(3, 5));
}

RC_GTEST_PROP(NextUseProperty, AWindowHoldsItsBlocksAndNoOthers, ()) {
  NextUseOptions options = any_job();
  options.order.shuffle = Shuffle::kBlock;
  const EpochOrder order(options.samples, options.order, options.blocks, 1);

  for (std::uint64_t id = 0; id < options.samples; ++id) {
    const PositionRun window =
        order.window_of(options.blocks->block_of(SampleId{id}));
    const std::uint64_t at = order.position_of(SampleId{id});
    RC_ASSERT(at >= window.begin);
    RC_ASSERT(at < window.end);
  }
}

// So many that orders are no tables, and epochs are looked through together.
TEST(NextUseTest, OneRankOfManyMeetsItWhereWalkingFindsIt) {
  const NextUseOptions options{.samples = Permutation::kTableBelow + 100,
                               .order = {.seed = 5},
                               .global_batch = 120,
                               .ranks = {17, 1, 60},
                               .start = 1234,
                               .end_epoch = 91};
  const std::vector<Read> reads = all_reads(options);
  NextUse next_use = *NextUse::make(options);

  std::uint64_t met = 0;
  for (std::uint64_t epoch : {0, 1, 40}) {
    for (std::uint64_t i = 0; i < 300; ++i) {
      const SampleId sample{i * 13};
      const AccessTime next = next_use.at_or_after(sample, epoch, 2000);
      ASSERT_EQ(next, brute_force(options, reads, sample, epoch, 2000));
      if (next != kNever) ++met;
    }
  }
  EXPECT_GT(met, 500u);
  EXPECT_LT(met, 900u);  // Some are not met before the end.
}

TEST(NextUseTest, RefusesRanksThatAreNot) {
  const auto make = [](RankRun ranks) {
    return NextUse::make(
        {.samples = 10, .global_batch = 4, .ranks = ranks, .end_epoch = 1});
  };

  EXPECT_FALSE(make({0, 0, 2}).has_value());
  EXPECT_FALSE(make({2, 1, 2}).has_value());
  EXPECT_FALSE(make({1, 2, 2}).has_value());
  EXPECT_TRUE(make({0, 2, 2}).has_value());
}

}  // namespace
}  // namespace leat
