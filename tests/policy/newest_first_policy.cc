// A policy that no user wants, added as leat/plan/README.md says: it drops what
// was admitted last.

#include <map>
#include <utility>

#include "leat/plan/policies/held_table.h"
#include "tests/policy/kinds.h"

namespace leat {
namespace {

class NewestFirstPolicy final : public CachePolicy {
 public:
  explicit NewestFirstPolicy(const CachePolicySpec& spec)
      : occupancy_(spec.capacity, spec.unit) {}

  void used(SampleId, AccessTime, AccessTime, std::vector<SampleId>&) override {
  }

  bool admit(SampleId sample, std::uint64_t bytes, AccessTime, AccessTime,
             std::vector<SampleId>& drop) override {
    if (occupancy_.cost(bytes) > occupancy_.capacity()) return false;
    while (!occupancy_.has_room(bytes)) drop_newest(drop);
    by_turn_[turns_] = sample;
    held_[sample.value] = {turns_++, bytes};
    occupancy_.add(bytes);
    return true;
  }

  void lost(SampleId sample) override {
    const auto found = held_.find(sample.value);
    if (found == held_.end()) return;
    occupancy_.remove(found->second.second);
    by_turn_.erase(found->second.first);
    held_.erase(found);
  }

  void set_capacity(std::uint64_t capacity,
                    std::vector<SampleId>& drop) override {
    occupancy_.set_capacity(capacity);
    while (occupancy_.is_over()) drop_newest(drop);
  }

  bool holds(SampleId sample) const override {
    return held_.contains(sample.value);
  }
  std::uint64_t held_bytes() const override { return occupancy_.bytes(); }
  std::uint64_t held_items() const override { return occupancy_.items(); }

 private:
  void drop_newest(std::vector<SampleId>& drop) {
    const SampleId newest = by_turn_.rbegin()->second;
    drop.push_back(newest);
    lost(newest);
  }

  Occupancy occupancy_;
  std::uint64_t turns_ = 0;
  std::map<std::uint64_t, SampleId> by_turn_;
  /// The turn and the bytes of each.
  std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> held_;
};

std::unique_ptr<CachePolicy> make_newest_first(const CachePolicySpec& spec) {
  return std::make_unique<NewestFirstPolicy>(spec);
}

}  // namespace

constinit const CachePolicyKind kNewestFirstPolicy = {
    .name = "newest_first",
    .goes_by_order_of_reads = true,
    .make = make_newest_first};

}  // namespace leat
