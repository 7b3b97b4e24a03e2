// The kinds of cache policies, a row each, with the traits that hold whatever a
// policy contains. No other code compares policy names.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "leat/plan/cache_policy.h"

namespace leat {

struct CachePolicyKind {
  std::string_view name;

  /// It decides by the next read of a sample. False: it ignores the next uses
  /// it is given, which may be omitted.
  bool goes_by_next_use = false;
  /// It decides only by the order of reads. So it is asked in the order in
  /// which reads are sent, not that in which bytes arrive.
  bool goes_by_order_of_reads = false;
  /// While it has room, it takes every sample that is read again, however late.
  /// So a disk may hold copies of what memory has, to be dropped first.
  bool takes_late_uses = false;
  /// Its records follow from the order of an epoch before the epoch begins.
  /// So samples may be dealt to the caches that hold them (HolderDealing).
  bool is_foreseen = false;
  /// It uses CachePolicySpec::window, which must then be given.
  bool has_window = false;
  /// It uses CachePolicySpec::planned.
  bool has_planned = false;
  /// It is there to compare with others' papers: leat.Cache refuses it, and
  /// leat.research.Cache takes it.
  bool is_for_research = false;
  /// `leat plan` shows what it would do (sweep()). A policy with a window
  /// cannot be: nobody has said how large.
  bool is_swept = true;

  /// A new policy. `spec` has been checked against the traits above.
  std::unique_ptr<CachePolicy> (*make)(const CachePolicySpec& spec) = nullptr;
};

/// All kinds: policies/kinds.cc.
std::span<const CachePolicyKind* const> cache_policy_kinds();

/// Null: no policy has that name.
const CachePolicyKind* find_cache_policy_kind(std::string_view name);

/// Whether the policy with this name has the trait. False: none exists.
bool has_policy_trait(std::string_view name, bool CachePolicyKind::*trait);

/// The names of those that have it, for a message: "belady or never_evict".
std::string policies_with(bool CachePolicyKind::*trait);

}  // namespace leat
