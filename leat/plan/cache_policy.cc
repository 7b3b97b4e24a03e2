#include "leat/plan/cache_policy.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <utility>

#include "leat/base/errors.h"
#include "leat/plan/cache_policy_kind.h"

namespace leat {
namespace {

Result<void> check_spec(const CachePolicySpec& spec,
                        const CachePolicyKind& kind) {
  if (spec.samples > CachePolicySpec::kMaxSamples) {
    return invalid(
        "a cache policy counts up to {} samples, and the dataset has {}: pack "
        "samples into shards, whose pieces are counted instead",
        CachePolicySpec::kMaxSamples, spec.samples);
  }
  if (kind.has_window && spec.window == 0) {
    return invalid("the policy {} sees a window of 0: give it at least 1",
                   spec.name);
  }
  if (!kind.has_window && spec.window != 0) {
    return invalid("the policy {} has no window: leave it out, or take {}",
                   spec.name, policies_with(&CachePolicyKind::has_window));
  }
  if (!kind.has_planned && spec.planned != nullptr) {
    return invalid("the policy {} takes no list of planned samples: take {}",
                   spec.name, policies_with(&CachePolicyKind::has_planned));
  }
  return {};
}

}  // namespace

std::span<const std::string_view> cache_policy_names() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names;
    for (const CachePolicyKind* kind : cache_policy_kinds()) {
      names.push_back(kind->name);
    }
    return names;
  }();
  return kNames;
}

const CachePolicyKind* find_cache_policy_kind(std::string_view name) {
  for (const CachePolicyKind* kind : cache_policy_kinds()) {
    if (kind->name == name) return kind;
  }
  return nullptr;
}

bool has_policy_trait(std::string_view name, bool CachePolicyKind::*trait) {
  const CachePolicyKind* kind = find_cache_policy_kind(name);
  return kind != nullptr && kind->*trait;
}

std::string policies_with(bool CachePolicyKind::*trait) {
  std::vector<std::string_view> names;
  for (const CachePolicyKind* kind : cache_policy_kinds()) {
    if (kind->*trait) names.push_back(kind->name);
  }
  return fmt::format("{}", fmt::join(names, " or "));
}

Result<std::unique_ptr<CachePolicy>> make_cache_policy(
    const CachePolicySpec& spec) {
  const CachePolicyKind* kind = find_cache_policy_kind(spec.name);
  if (kind == nullptr) {
    return invalid("there is no cache policy \"{}\": take one of {}", spec.name,
                   fmt::join(cache_policy_names(), ", "));
  }
  LEAT_TRY_VOID(check_spec(spec, *kind));
  return kind->make(spec);
}

}  // namespace leat
