// Properties of every policy that a program has, by cache_policy_kinds().

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <string_view>
#include <vector>

#include "leat/plan/cache_policy_kind.h"

namespace leat {
namespace {

std::unique_ptr<CachePolicy> policy_of(std::string_view name,
                                       std::uint64_t samples,
                                       std::uint64_t capacity) {
  const bool has_window = has_policy_trait(name, &CachePolicyKind::has_window);
  return *make_cache_policy({.name = std::string(name),
                             .samples = samples,
                             .capacity = capacity,
                             .window = has_window ? AccessTime{20} : 0});
}

TEST(EachCachePolicyTest, RefusesASampleLargerThanItself) {
  for (const std::string_view name : cache_policy_names()) {
    const auto policy = policy_of(name, 10, 20);
    std::vector<SampleId> drop;
    ASSERT_TRUE(policy->admit(SampleId{1}, 20, 0, 15, drop)) << name;

    EXPECT_FALSE(policy->admit(SampleId{2}, 21, 1, 2, drop)) << name;

    EXPECT_TRUE(drop.empty()) << name;
    EXPECT_TRUE(policy->holds(SampleId{1})) << name;
  }
}

// Holds for any calls: the samples that a policy says it holds are those that
// were admitted and neither dropped nor lost, and they fit.
RC_GTEST_PROP(EachCachePolicyProperty, WhatIsHeldIsAccountedFor, ()) {
  const std::string_view name =
      *rc::gen::elementOf(std::vector<std::string_view>(
          cache_policy_names().begin(), cache_policy_names().end()));
  auto capacity = *rc::gen::inRange<std::uint64_t>(0, 100);
  const auto policy = policy_of(name, 40, capacity);
  std::map<std::uint64_t, std::uint64_t> bytes_of;
  for (AccessTime now = 0; now < 200; ++now) {
    const auto id = *rc::gen::inRange<std::uint64_t>(0, 40);
    std::vector<SampleId> drop;
    const AccessTime next = now + *rc::gen::inRange<std::uint64_t>(1, 40);
    if (*rc::gen::inRange(0, 20) == 0) {
      capacity = *rc::gen::inRange<std::uint64_t>(0, 100);
      policy->set_capacity(capacity, drop);
    } else if (*rc::gen::inRange(0, 8) == 0) {
      policy->lost(SampleId{id});
      bytes_of.erase(id);
    } else if (policy->holds(SampleId{id})) {
      policy->used(SampleId{id}, now, next, drop);
    } else {
      const auto bytes = *rc::gen::inRange<std::uint64_t>(0, 50);
      if (policy->admit(SampleId{id}, bytes, now, next, drop)) {
        bytes_of[id] = bytes;
      }
    }
    for (const SampleId dropped : drop) {
      RC_ASSERT(bytes_of.erase(dropped.value) == 1u);
    }
    std::uint64_t sum = 0;
    for (const auto& [held, bytes] : bytes_of) {
      RC_ASSERT(policy->holds(SampleId{held}));
      sum += bytes;
    }
    RC_ASSERT(policy->held_bytes() == sum);
    RC_ASSERT(policy->held_items() == bytes_of.size());
    RC_ASSERT(sum <= capacity);
  }
}

}  // namespace
}  // namespace leat
