#include "leat/plan/cache_policy.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace leat {
namespace {

std::unique_ptr<CachePolicy> policy_by(const CachePolicySpec& spec) {
  Result<std::unique_ptr<CachePolicy>> policy = make_cache_policy(spec);
  EXPECT_TRUE(policy.has_value());
  return std::move(*policy);
}

std::unique_ptr<CachePolicy> items(const char* name, std::uint64_t capacity,
                                   AccessTime window = 0) {
  return policy_by({.name = name,
                    .samples = 100,
                    .capacity = capacity,
                    .unit = CapacityUnit::kItems,
                    .window = window});
}

/// Reads a sample as a tier would; true if it was held.
bool touch(CachePolicy& policy, std::uint64_t sample, AccessTime now,
           AccessTime next_use, std::vector<SampleId>& drop) {
  if (policy.holds(SampleId{sample})) {
    policy.used(SampleId{sample}, now, next_use, drop);
    return true;
  }
  policy.admit(SampleId{sample}, 1, now, next_use, drop);
  return false;
}

std::vector<SampleId> ids(std::initializer_list<std::uint64_t> values) {
  std::vector<SampleId> out;
  out.reserve(values.size());
  for (const std::uint64_t value : values) out.push_back(SampleId{value});
  return out;
}

TEST(CachePolicyTest, LruDropsWhatWasUsedLongestAgo) {
  const auto policy = items("lru", 2);
  std::vector<SampleId> drop;

  touch(*policy, 1, 0, kNever, drop);
  touch(*policy, 2, 1, kNever, drop);
  touch(*policy, 1, 2, kNever, drop);
  touch(*policy, 3, 3, kNever, drop);

  EXPECT_EQ(drop, ids({2}));
}

TEST(CachePolicyTest, FifoDropsWhatCameFirstHoweverOftenItIsUsed) {
  const auto policy = items("fifo", 2);
  std::vector<SampleId> drop;

  touch(*policy, 1, 0, kNever, drop);
  touch(*policy, 2, 1, kNever, drop);
  touch(*policy, 1, 2, kNever, drop);
  touch(*policy, 3, 3, kNever, drop);

  EXPECT_EQ(drop, ids({1}));
}

TEST(CachePolicyTest, NeverEvictRefusesWhatNoLongerFits) {
  const auto policy = items("never_evict", 2);
  std::vector<SampleId> drop;

  for (const std::uint64_t id : {1, 2, 3}) touch(*policy, id, 0, 9, drop);

  EXPECT_TRUE(drop.empty());
  EXPECT_FALSE(policy->holds(SampleId{3}));
  EXPECT_EQ(policy->held_items(), 2u);
}

TEST(CachePolicyTest, NeverEvictKeepsOnlyWhatIsPlanned) {
  const auto policy =
      policy_by({.name = "never_evict",
                 .samples = 100,
                 .capacity = 10,
                 .unit = CapacityUnit::kItems,
                 .planned = [](SampleId id) { return id.value % 2 == 0; }});
  std::vector<SampleId> drop;

  for (const std::uint64_t id : {1, 2, 3, 4}) touch(*policy, id, 0, 9, drop);

  EXPECT_EQ(policy->held_items(), 2u);
  EXPECT_TRUE(policy->holds(SampleId{4}));
}

TEST(CachePolicyTest, BeladyDropsTheFurthestAndRefusesTheStillFurther) {
  const auto policy = items("belady", 2);
  std::vector<SampleId> drop;

  touch(*policy, 1, 0, 10, drop);
  touch(*policy, 2, 1, 20, drop);
  touch(*policy, 3, 2, 15, drop);  // 2 goes.
  touch(*policy, 4, 3, 30, drop);  // Refused.
  touch(*policy, 5, 4, 15, drop);  // As far as the furthest: refused.

  EXPECT_EQ(drop, ids({2}));
  EXPECT_TRUE(policy->holds(SampleId{1}));
  EXPECT_TRUE(policy->holds(SampleId{3}));
}

TEST(CachePolicyTest, BeladyGivesUpWhatIsNeverUsedAgain) {
  const auto policy = items("belady", 2);
  std::vector<SampleId> drop;

  touch(*policy, 1, 0, 10, drop);
  touch(*policy, 2, 1, kNever, drop);
  touch(*policy, 1, 10, kNever, drop);

  EXPECT_EQ(drop, ids({1}));
  EXPECT_EQ(policy->held_items(), 0u);
}

TEST(CachePolicyTest, BeladyRefusesWithoutDroppingIfNotEnoughGoesFree) {
  const auto policy =
      policy_by({.name = "belady", .samples = 100, .capacity = 10});
  std::vector<SampleId> drop;
  ASSERT_TRUE(policy->admit(SampleId{1}, 6, 0, 5, drop));
  ASSERT_TRUE(policy->admit(SampleId{2}, 4, 0, 50, drop));

  // Dropping 2 frees 4 bytes, and 1 is used before it.
  EXPECT_FALSE(policy->admit(SampleId{3}, 7, 0, 20, drop));

  EXPECT_TRUE(drop.empty());
  EXPECT_TRUE(policy->holds(SampleId{2}));
  EXPECT_EQ(policy->held_bytes(), 10u);
}

TEST(CachePolicyTest, AWindowHoldsOnlyWhatIsUsedWithinIt) {
  const auto policy = items("windowed_belady", 10, /*window=*/5);
  std::vector<SampleId> drop;

  touch(*policy, 1, 0, 4, drop);
  touch(*policy, 2, 1, 6, drop);  // Five away: not seen.
  EXPECT_TRUE(policy->holds(SampleId{1}));
  EXPECT_FALSE(policy->holds(SampleId{2}));
  touch(*policy, 1, 4, 9, drop);

  EXPECT_EQ(drop, ids({1}));
}

TEST(CachePolicyTest, AWindowCountsReadsWhereTheClockLeapsFromEpochToEpoch) {
  const auto policy = policy_by({.name = "windowed_belady",
                                 .samples = 10,
                                 .capacity = 100,
                                 .window = 5,
                                 .epoch_reads = 10});
  const auto at = [](AccessTime epoch, AccessTime read) {
    return epoch * kEpochTime + read;
  };
  std::vector<SampleId> drop;

  EXPECT_TRUE(policy->admit(SampleId{1}, 1, at(0, 8), at(1, 2), drop));
  EXPECT_FALSE(policy->admit(SampleId{2}, 1, at(0, 8), at(1, 3), drop));
  EXPECT_FALSE(policy->admit(SampleId{3}, 1, at(0, 8), at(2, 2), drop));
  // A tier's offers of records that come again last, or never.
  EXPECT_FALSE(policy->admit(SampleId{4}, 1, at(0, 8), kNever - 1, drop));
  EXPECT_FALSE(policy->admit(SampleId{5}, 1, at(0, 8), kNever, drop));
  policy->used(SampleId{1}, at(1, 2), at(1, 7), drop);

  EXPECT_EQ(drop, ids({1}));
}

TEST(CachePolicyTest, ASmallerOnePartsWithWhatItWouldDropFirst) {
  // Five samples: 4 is used furthest in the future; 0 was used again.
  const std::map<std::string_view, std::vector<SampleId>> expected = {
      {"belady", ids({4, 2})},      {"windowed_belady", ids({4, 2})},
      {"never_evict", ids({4, 3})}, {"lru", ids({1, 2})},
      {"fifo", ids({0, 1})},
  };
  const std::vector<AccessTime> next_uses = {10, 20, 40, 30, 50};
  for (const std::string_view name : cache_policy_names()) {
    SCOPED_TRACE(name);
    const auto policy = items(std::string(name).c_str(), 5,
                              name == "windowed_belady" ? 100 : 0);
    std::vector<SampleId> drop;
    for (std::uint64_t id = 0; id < 5; ++id) {
      ASSERT_TRUE(policy->admit(SampleId{id}, 1, id, next_uses[id], drop));
    }
    policy->used(SampleId{0}, 5, 15, drop);
    ASSERT_TRUE(drop.empty());

    policy->set_capacity(3, drop);
    EXPECT_EQ(drop, expected.at(name));
    EXPECT_EQ(policy->held_items(), 3u);

    drop.clear();
    policy->set_capacity(4, drop);
    EXPECT_TRUE(drop.empty());
    EXPECT_TRUE(policy->admit(SampleId{7}, 1, 6, 99, drop));
    EXPECT_TRUE(drop.empty());  // There was room at once.
    EXPECT_EQ(policy->held_items(), 4u);
  }
}

TEST(CachePolicyTest, BadSpecsSayWhatToChange) {
  const auto message = [](const CachePolicySpec& spec) {
    const auto made = make_cache_policy(spec);
    return made.has_value() ? std::string() : made.error().message();
  };

  EXPECT_NE(message({.name = "clock"}).find("belady, windowed_belady"),
            std::string::npos);
  EXPECT_NE(message({.name = "windowed_belady"}).find("at least 1"),
            std::string::npos);
  EXPECT_NE(message({.name = "lru", .window = 3}).find("no window"),
            std::string::npos);
  EXPECT_NE(message({.name = "lru", .planned = [](SampleId) { return true; }})
                .find("never_evict"),
            std::string::npos);
  EXPECT_NE(message({.samples = std::uint64_t{1} << 33}).find("shards"),
            std::string::npos);
}

/// The obvious policy: all next uses in a map, the furthest found by looking.
struct ObviousBelady {
  std::map<std::uint64_t, AccessTime> held;
  std::uint64_t capacity;

  bool touch(std::uint64_t sample, AccessTime next_use) {
    const bool hit = held.erase(sample) > 0;
    if (next_use == kNever) return hit;
    if (held.size() == capacity) {
      const auto furthest = std::max_element(
          held.begin(), held.end(),
          [](const auto& a, const auto& b) { return a.second < b.second; });
      if (furthest == held.end() || furthest->second <= next_use) return hit;
      held.erase(furthest);
    }
    held[sample] = next_use;
    return hit;
  }
};

RC_GTEST_PROP(CachePolicyProperty, BeladyIsTheObviousOne, ()) {
  const auto capacity = *rc::gen::inRange<std::uint64_t>(0, 12);
  const auto trace = *rc::gen::container<std::vector<std::uint64_t>>(
      rc::gen::inRange<std::uint64_t>(0, 30));
  const auto policy = items("belady", capacity);
  ObviousBelady model{.held = {}, .capacity = capacity};

  for (AccessTime now = 0; now < trace.size(); ++now) {
    const auto again =
        std::find(trace.begin() + static_cast<std::ptrdiff_t>(now) + 1,
                  trace.end(), trace[now]);
    const AccessTime next_use =
        again == trace.end() ? kNever
                             : static_cast<AccessTime>(again - trace.begin());
    std::vector<SampleId> drop;
    RC_ASSERT(touch(*policy, trace[now], now, next_use, drop) ==
              model.touch(trace[now], next_use));
    for (const SampleId id : drop) RC_ASSERT(!policy->holds(id));
    RC_ASSERT(policy->held_items() == model.held.size());
  }
}

}  // namespace
}  // namespace leat
