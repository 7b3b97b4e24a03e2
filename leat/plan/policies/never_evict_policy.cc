// CoorDL's MinIO: samples that are held stay.
//
// Mohan et al., "Analyzing and Mitigating Data Stalls in DNN Training", VLDB
// 2021: every item is used once an epoch, so it does not matter which are kept
// as long as they stay. `spec.planned` says which ones this tier may keep.

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "leat/plan/policies/held_table.h"
#include "leat/plan/policies/kinds.h"

namespace leat {
namespace {

struct NeverEvictEntry {
  std::uint64_t bytes = 0;
  std::uint64_t turn = 0;  // Counts admissions.
};
using NeverEvictTable = HeldTable<NeverEvictEntry>;

class NeverEvictPolicy final : public CachePolicy {
 public:
  explicit NeverEvictPolicy(const CachePolicySpec& spec)
      : planned_(spec.planned),
        occupancy_(spec.capacity, spec.unit),
        table_(spec.samples) {}

  void used(SampleId sample, AccessTime, AccessTime,
            std::vector<SampleId>&) override {
    LEAT_CHECK(holds(sample));
  }

  bool admit(SampleId sample, std::uint64_t bytes, AccessTime, AccessTime,
             std::vector<SampleId>&) override {
    if (!occupancy_.has_room(bytes)) return false;
    if (planned_ != nullptr && !planned_(sample)) return false;
    table_.add(sample, {.bytes = bytes, .turn = turns_++});
    occupancy_.add(bytes);
    return true;
  }

  void lost(SampleId sample) override {
    const std::uint32_t slot = table_.find(sample);
    if (slot == NeverEvictTable::kNone) return;
    occupancy_.remove(table_[slot].bytes);
    table_.remove(sample);
  }

  void set_capacity(std::uint64_t capacity,
                    std::vector<SampleId>& drop) override {
    occupancy_.set_capacity(capacity);
    if (!occupancy_.is_over()) return;
    std::vector<std::pair<std::uint64_t, SampleId>> by_turn;
    for (SampleId id{0}; id.value < table_.end(); ++id.value) {
      const std::uint32_t slot = table_.find(id);
      if (slot != NeverEvictTable::kNone)
        by_turn.emplace_back(table_[slot].turn, id);
    }
    std::ranges::sort(by_turn, std::greater(),
                      &decltype(by_turn)::value_type::first);
    for (const auto& [turn, id] : by_turn) {
      if (!occupancy_.is_over()) return;
      drop.push_back(id);
      lost(id);
    }
  }

  bool holds(SampleId sample) const override {
    return table_.find(sample) != NeverEvictTable::kNone;
  }
  std::uint64_t held_bytes() const override { return occupancy_.bytes(); }
  std::uint64_t held_items() const override { return occupancy_.items(); }

 private:
  const std::function<bool(SampleId)> planned_;
  Occupancy occupancy_;
  NeverEvictTable table_;
  std::uint64_t turns_ = 0;
};

std::unique_ptr<CachePolicy> make_never_evict(const CachePolicySpec& spec) {
  return std::make_unique<NeverEvictPolicy>(spec);
}

}  // namespace

constinit const CachePolicyKind kNeverEvictPolicy = {.name = "never_evict",
                                                     .is_foreseen = true,
                                                     .has_planned = true,
                                                     .make = make_never_evict};

}  // namespace leat
