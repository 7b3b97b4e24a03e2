// A tier hits what the simulator says, exactly: the same reads, one at a time,
// through a CachedStore over one tier, in RAM and on disk, of each policy.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <latch>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "leat/base/units.h"
#include "leat/cache/cached_store.h"
#include "leat/plan/holder_dealing.h"
#include "leat/plan/simulator.h"
#include "leat/store/memory/memory_store.h"

namespace leat {
namespace {

constexpr std::uint64_t kSamples = 240;
constexpr std::uint64_t kEpochs = 5;
constexpr std::uint64_t kGlobalBatch = 12;

/// One page to four, and mostly not whole ones.
std::uint64_t length_of(SampleId id) { return 700 + mix64(id.value) % 13'000; }

std::string body_of(SampleId id) {
  std::string body(length_of(id), '\0');
  for (std::size_t i = 0; i < body.size(); ++i) {
    body[i] = static_cast<char>(mix64(id.value * 20'000 + i));
  }
  return body;
}

/// A rank of `ranks`, each on a node of its own with a tier of `capacity`.
struct Job {
  std::uint32_t ranks = 1;
  std::string policy;
  std::uint64_t capacity = 0;
  Locality locality = Locality::kNone;
};

SimulationOptions simulation_of(const Job& job) {
  SimulationOptions options;
  options.samples = kSamples;
  options.sizes.clear();
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    options.sizes.push_back(record_cost(length_of(SampleId{i})));
  }
  options.global_batch = kGlobalBatch;
  options.locality = job.locality;
  options.ranks = job.ranks;
  options.nodes = job.ranks;
  options.only_ranks = 1;
  options.epochs = kEpochs;
  options.tiers = {{.policy = job.policy, .capacity = job.capacity}};
  return options;
}

/// Hears whether a read was a hit, and waits for it.
class Reader final : public ReadObserver {
 public:
  void backs_off(TimePoint, TimePoint) override {}
  void cache_had(CacheLevel, std::uint64_t) override { is_hit = true; }
  bool is_hit = false;
  std::latch is_done{1};
};

/// A tier before a store, and what a rank does with them.
class Driven {
 public:
  Driven(CacheLevel level, const Job& job, const std::string& folder)
      : job_(job) {
    MemoryObjects objects;
    for (std::uint64_t i = 0; i < kSamples; ++i) {
      objects[std::to_string(i)] = body_of(SampleId{i});
    }
    auto store = open_memory_store(std::move(objects));
    for (std::uint64_t i = 0; i < kSamples; ++i) {
      etags_.push_back(store->stat(std::to_string(i), {})->etag);
    }
    auto files = level == CacheLevel::kRam ? open_segment_memory(ops_)
                                           : *open_segment_folder(folder, ops_);
    std::vector<CacheTier> tiers;
    tiers.push_back({.level = level,
                     .tier = *SegmentTier::open(std::move(files),
                                                {.limit_bytes = job.capacity,
                                                 .segment_bytes = 128 * kKiB,
                                                 .source = 1},
                                                ops_, clock_, &metrics_),
                     .policy = std::make_unique<RecordPolicy>(
                         *make_cache_policy({.name = job.policy,
                                             .samples = kSamples,
                                             .capacity = job.capacity}),
                         kSamples),
                     .is_lasting = level == CacheLevel::kDisk});
    store_ = std::make_unique<CachedStore>(
        std::move(store), std::move(tiers),
        CachedStoreOptions{.place = "", .samples = kSamples}, &metrics_);
    if (deals_to_holders(job.locality)) {
      dealing_ = *HolderDealing::make(
          {.samples = kSamples,
           .global_batch = kGlobalBatch,
           .world_size = job.ranks,
           .policy = job.policy,
           .capacity = job.capacity,
           .cost = [](SampleId id) { return record_cost(length_of(id)); },
           .is_balanced = job.locality == Locality::kBalance,
           .epochs = kEpochs});
    }
  }

  /// Hits of an epoch of rank 0.
  std::uint64_t run_epoch(std::uint64_t epoch) {
    const EpochOrder order(kSamples, {}, nullptr, epoch);
    const Steps steps = *Steps::make({.samples = kSamples,
                                      .global_batch = kGlobalBatch,
                                      .rank = {0, job_.ranks}});
    std::uint64_t hits = 0;
    EXPECT_TRUE(dealing_ == nullptr || dealing_->seek(epoch, 0, {}));
    for (std::uint64_t k = 0; k < steps.count(); ++k) {
      if (dealing_ != nullptr) {
        for (const DealtSample& dealt : dealing_->next_step()) {
          if (dealt.rank != 0) continue;
          if (read(dealt.sample, next_use_.time_of(epoch, dealt.position),
                   dealt.next_use)) {
            ++hits;
          }
        }
        continue;
      }
      const StepSlice slice = steps.slice(k);
      for (std::uint64_t p = slice.begin; p < slice.end; ++p) {
        const SampleId id = order.at(p);
        if (read(id, next_use_.time_of(epoch, p),
                 next_use_.at_or_after(id, epoch, p + 1))) {
          ++hits;
        }
      }
    }
    return hits;
  }

  std::int64_t refusals() const {
    return metrics_.value(Metric::kCacheRefusals);
  }

 private:
  bool read(SampleId id, AccessTime now, AccessTime next_use) {
    Reader reader;
    std::string got(length_of(id), ' ');
    store_->read(
        {.object = {.key = std::to_string(id.value), .etag = etags_[id.value]},
         .into = std::as_writable_bytes(std::span(got)),
         .observer = &reader,
         .hint = ReadHint{.now = now, .next_use = next_use}},
        {}, [&](const Result<void>& result) {
          EXPECT_TRUE(result);
          reader.is_done.count_down();
        });
    reader.is_done.wait();
    EXPECT_EQ(got, body_of(id));
    store_->drain();  // The next read finds all of it decided and written.
    return reader.is_hit;
  }

  const Job job_;
  SystemFileOps ops_;
  SteadyClock clock_;
  Metrics metrics_;
  std::vector<std::string> etags_;
  NextUse next_use_ = *NextUse::make({.samples = kSamples,
                                      .global_batch = kGlobalBatch,
                                      .ranks = {0, 1, job_.ranks},
                                      .end_epoch = kEpochs});
  std::unique_ptr<HolderDealing> dealing_;
  std::unique_ptr<CachedStore> store_;
};

using Case = std::tuple<CacheLevel, std::string>;

class SimulatedHitsTest : public ::testing::TestWithParam<Case> {
 protected:
  SimulatedHitsTest() {
    std::string name = ::testing::TempDir() + "leat-hits-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~SimulatedHitsTest() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

TEST_P(SimulatedHitsTest, OneReadAtATimeHitsWhatTheSimulatorSays) {
  const auto& [level, policy] = GetParam();
  int run = 0;
  for (const std::uint32_t ranks : {1, 3}) {
    for (const std::uint64_t percent : {40, 75}) {
      std::uint64_t all = 0;
      for (std::uint64_t i = 0; i < kSamples; ++i) {
        all += record_cost(length_of(SampleId{i}));
      }
      const Job job{.ranks = ranks,
                    .policy = policy,
                    .capacity = all / ranks * percent / 100};
      SCOPED_TRACE(std::to_string(ranks) + " ranks, " +
                   std::to_string(percent) + " % of what one reads");
      const SimulationReport simulated = *simulate(simulation_of(job));
      Driven driven(level, job, folder_ + "/" + std::to_string(run++));

      std::uint64_t hits = 0;
      for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
        const std::uint64_t expected = simulated.epochs[epoch].tier_hits[0];
        EXPECT_EQ(driven.run_epoch(epoch), expected) << epoch;
        hits += expected;
      }

      EXPECT_EQ(driven.refusals(), 0);
      EXPECT_GT(hits, 0u);
      EXPECT_LT(hits, (kEpochs - 1) * kSamples / ranks);
    }
  }
}

TEST_P(SimulatedHitsTest, OneReadAtATimeOfWhatIsDealtToHoldersToo) {
  const auto& [level, policy] = GetParam();
  if (policy != "belady" && policy != "never_evict") {
    EXPECT_FALSE(simulate(simulation_of({.ranks = 3,
                                         .policy = policy,
                                         .capacity = 1000,
                                         .locality = Locality::kRemap})));
    return;
  }
  int run = 0;
  for (const Locality locality : {Locality::kRemap, Locality::kBalance}) {
    const Job job{.ranks = 3,
                  .policy = policy,
                  .capacity = kSamples / 3 / 2 * record_cost(8000),
                  .locality = locality};
    SCOPED_TRACE(to_string(locality));
    const SimulationReport simulated = *simulate(simulation_of(job));
    Driven driven(level, job, folder_ + "/" + std::to_string(run++));

    std::uint64_t hits = 0;
    for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
      const std::uint64_t expected = simulated.epochs[epoch].tier_hits[0];
      EXPECT_EQ(driven.run_epoch(epoch), expected) << epoch;
      hits += expected;
    }

    EXPECT_EQ(driven.refusals(), 0);
    EXPECT_GT(hits, (kEpochs - 1) * kSamples / 3 / 3);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Tiers, SimulatedHitsTest,
    ::testing::Combine(::testing::Values(CacheLevel::kRam, CacheLevel::kDisk),
                       ::testing::Values("belady", "never_evict", "lru",
                                         "fifo")),
    [](const auto& tested) {
      return std::string(std::get<0>(tested.param) == CacheLevel::kRam
                             ? "Ram_"
                             : "Disk_")
          .append(std::get<1>(tested.param));
    });

}  // namespace
}  // namespace leat
