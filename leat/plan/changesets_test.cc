#include "leat/plan/changesets.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

#include "leat/plan/cache_policy.h"

namespace leat {
namespace {

using StepList = std::vector<std::vector<SampleId>>;

/// Steps of distinct samples below `samples`.
StepList any_steps(std::uint64_t samples) {
  StepList steps;
  const auto count = *rc::gen::inRange<std::size_t>(0, 30);
  steps.reserve(count);
  for (std::size_t k = 0; k < count; ++k) {
    std::set<std::uint64_t> ids;
    const auto size = *rc::gen::inRange<std::size_t>(0, 12);
    while (ids.size() < size) {
      ids.insert(*rc::gen::inRange<std::uint64_t>(0, samples));
    }
    std::vector<SampleId> step;
    step.reserve(ids.size());
    for (const std::uint64_t id : ids) step.push_back(SampleId{id});
    steps.push_back(std::move(step));
  }
  return steps;
}

AccessTime next_step_with(const StepList& steps, std::size_t after,
                          SampleId id) {
  for (std::size_t k = after + 1; k < steps.size(); ++k) {
    if (std::find(steps[k].begin(), steps[k].end(), id) != steps[k].end()) {
      return k;
    }
  }
  return kNever;
}

/// The policy asked sample by sample, those it holds first.
std::uint64_t online_hits(const StepList& steps, std::uint64_t samples,
                          std::uint64_t capacity) {
  const auto policy = *make_cache_policy({.name = "belady",
                                          .samples = samples,
                                          .capacity = capacity,
                                          .unit = CapacityUnit::kItems});
  std::uint64_t hits = 0;
  for (std::size_t k = 0; k < steps.size(); ++k) {
    std::vector<SampleId> order = steps[k];
    std::stable_partition(order.begin(), order.end(),
                          [&](SampleId id) { return policy->holds(id); });
    for (const SampleId id : order) {
      std::vector<SampleId> drop;
      const AccessTime next = next_step_with(steps, k, id);
      if (policy->holds(id)) {
        ++hits;
        policy->used(id, k, next, drop);
      } else {
        policy->admit(id, 1, k, next, drop);
      }
    }
  }
  return hits;
}

RC_GTEST_PROP(ChangesetsProperty, HitAsOftenAsBeladyAskedOnline, ()) {
  const auto samples = *rc::gen::inRange<std::uint64_t>(12, 60);
  const auto capacity = *rc::gen::inRange<std::uint64_t>(0, 30);
  const StepList steps = any_steps(samples);

  std::uint64_t hits = 0;
  for (const Changeset& change : make_changesets(steps, samples, capacity)) {
    hits += change.hits;
  }

  RC_ASSERT(hits == online_hits(steps, samples, capacity));
}

// Carrying the lists out blindly is enough: no more than fits, nothing put in
// twice, nothing taken out that is not there, and the hits are what is there.
RC_GTEST_PROP(ChangesetsProperty, CanBeCarriedOutWithoutLooking, ()) {
  const auto samples = *rc::gen::inRange<std::uint64_t>(12, 60);
  const auto capacity = *rc::gen::inRange<std::uint64_t>(0, 30);
  const StepList steps = any_steps(samples);
  const auto changes = make_changesets(steps, samples, capacity);

  std::set<SampleId> held;
  RC_ASSERT(changes.size() == steps.size());
  for (std::size_t k = 0; k < steps.size(); ++k) {
    std::uint64_t hits = 0;
    for (const SampleId id : steps[k]) hits += held.contains(id) ? 1U : 0U;
    RC_ASSERT(changes[k].hits == hits);
    for (const SampleId id : changes[k].out) RC_ASSERT(held.erase(id) == 1u);
    for (const SampleId id : changes[k].in) {
      RC_ASSERT(std::find(steps[k].begin(), steps[k].end(), id) !=
                steps[k].end());
      RC_ASSERT(held.insert(id).second);
    }
    RC_ASSERT(held.size() <= capacity);
  }
}

TEST(ChangesetsTest, KeepsWhatIsUsedSoonest) {
  const StepList steps = {
      {SampleId{0}, SampleId{1}}, {SampleId{1}}, {SampleId{0}, SampleId{1}}};

  const auto changes = make_changesets(steps, 2, /*capacity=*/1);

  EXPECT_EQ(changes[0].in, std::vector<SampleId>{SampleId{1}});
  EXPECT_EQ(changes[1].hits, 1u);
  EXPECT_EQ(changes[2].hits, 1u);
  EXPECT_EQ(changes[2].out, std::vector<SampleId>{SampleId{1}});
}

}  // namespace
}  // namespace leat
