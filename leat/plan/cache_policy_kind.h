// The kinds of cache policies: a row each, with what is true of a policy
// whatever it holds. Nobody else compares their names.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "leat/plan/cache_policy.h"

namespace leat {

struct CachePolicyKind {
  std::string_view name;

  /// It decides by when a sample is read next. False: the next uses that it is
  /// told change nothing, and may be left out.
  bool goes_by_next_use = false;
  /// It decides by the order of reads alone. So it is asked in the order in
  /// which reads are sent, not in that in which bytes come.
  bool goes_by_order_of_reads = false;
  /// While it has room it takes whatever is read again, however late. So a
  /// disk may hold copies of what memory has, as what goes first.
  bool takes_late_uses = false;
  /// Its records follow from the order of an epoch before the epoch begins.
  /// So samples may be dealt to the caches that hold them (HolderDealing).
  bool is_foreseen = false;
  /// It reads CachePolicySpec::window, which must then be given.
  bool has_window = false;
  /// It reads CachePolicySpec::planned.
  bool has_planned = false;

  /// A new policy. `spec` has been checked against the traits above.
  std::unique_ptr<CachePolicy> (*make)(const CachePolicySpec& spec) = nullptr;
};

/// All of them: policies/kinds.cc.
std::span<const CachePolicyKind* const> cache_policy_kinds();

/// Null: no policy has that name.
const CachePolicyKind* find_cache_policy_kind(std::string_view name);

/// Whether the policy of that name has the trait. False: there is none.
bool has_policy_trait(std::string_view name, bool CachePolicyKind::*trait);

/// The names of those that have it, for a message: "belady or never_evict".
std::string policies_with(bool CachePolicyKind::*trait);

}  // namespace leat
