#include "leat/plan/cache_policy.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

#include "leat/plan/policies/belady_policy.h"
#include "leat/plan/policies/epoch_times_policy.h"
#include "leat/plan/policies/never_evict_policy.h"
#include "leat/plan/policies/queue_policy.h"

namespace leat {
namespace {

constexpr std::array<std::string_view, 5> kNames = {
    "belady", "windowed_belady", "never_evict", "lru", "fifo"};

Error invalid(std::string message) {
  return Error(ErrorCode::kInvalidArgument, std::move(message));
}

Result<void> check_spec(const CachePolicySpec& spec) {
  if (spec.samples > CachePolicySpec::kMaxSamples) {
    return invalid(fmt::format(
        "a cache policy counts up to {} samples, and the dataset has {}: pack "
        "samples into shards, whose pieces are counted instead",
        CachePolicySpec::kMaxSamples, spec.samples));
  }
  if (spec.name == "windowed_belady" && spec.window == 0) {
    return invalid(
        "the policy windowed_belady sees a window of 0: give it at least 1");
  }
  if (spec.name != "windowed_belady" && spec.window != 0) {
    return invalid(
        fmt::format("the policy {} has no window: leave it out, or take "
                    "windowed_belady",
                    spec.name));
  }
  if (spec.name != "never_evict" && spec.planned != nullptr) {
    return invalid(fmt::format(
        "the policy {} takes no list of planned samples: take never_evict",
        spec.name));
  }
  return {};
}

}  // namespace

std::span<const std::string_view> cache_policy_names() { return kNames; }

Result<std::unique_ptr<CachePolicy>> make_cache_policy(
    const CachePolicySpec& spec) {
  LEAT_TRY_VOID(check_spec(spec));
  if (spec.name == "belady") return make_belady_policy(spec, kNever);
  if (spec.name == "windowed_belady") {
    auto policy = make_belady_policy(spec, spec.window);
    if (spec.epoch_reads == 0) return policy;
    return make_epoch_times_policy(std::move(policy), spec.epoch_reads);
  }
  if (spec.name == "never_evict") return make_never_evict_policy(spec);
  if (spec.name == "lru") return make_queue_policy(spec, OnUse::kRejoin);
  if (spec.name == "fifo") return make_queue_policy(spec, OnUse::kStay);
  return invalid(fmt::format("there is no cache policy \"{}\": take one of {}",
                             spec.name, fmt::join(kNames, ", ")));
}

}  // namespace leat
