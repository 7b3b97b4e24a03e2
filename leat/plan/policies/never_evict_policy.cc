#include "leat/plan/policies/never_evict_policy.h"

#include "leat/plan/policies/held_table.h"

namespace leat {
namespace {

using Table = HeldTable<std::uint64_t>;  // The bytes of each.

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
    table_.add(sample, bytes);
    occupancy_.add(bytes);
    return true;
  }

  void lost(SampleId sample) override {
    const std::uint32_t slot = table_.find(sample);
    if (slot == Table::kNone) return;
    occupancy_.remove(table_[slot]);
    table_.remove(sample);
  }

  bool holds(SampleId sample) const override {
    return table_.find(sample) != Table::kNone;
  }
  std::uint64_t held_bytes() const override { return occupancy_.bytes(); }
  std::uint64_t held_items() const override { return occupancy_.items(); }

 private:
  const std::function<bool(SampleId)> planned_;
  Occupancy occupancy_;
  Table table_;
};

}  // namespace

std::unique_ptr<CachePolicy> make_never_evict_policy(
    const CachePolicySpec& spec) {
  return std::make_unique<NeverEvictPolicy>(spec);
}

}  // namespace leat
