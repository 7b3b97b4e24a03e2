// Belady's rule with bypass, over all the future or over a window of it.
//
// Sizes may differ. To make room for a new sample, the policy drops
// samples that are used later than it, the furthest first. If dropping all
// of those would not make enough room, the policy refuses the new sample
// and drops nothing. (That is optimal if sizes are equal, and otherwise
// the usual greedy rule.)
//
// The held samples are in a max-heap by next use. It is 4-ary, so that a
// descent touches half as many cache lines as in a binary heap. Each held
// sample knows its place in the heap, so a use moves its entry instead of
// leaving a stale one behind.

#include <algorithm>
#include <utility>

#include "leat/plan/policies/epoch_times_policy.h"
#include "leat/plan/policies/held_table.h"
#include "leat/plan/policies/kinds.h"

namespace leat {
namespace {

struct BeladyEntry {
  std::uint64_t bytes = 0;
  std::uint32_t sample = 0;
  std::uint32_t place = 0;  // In the heap.
};
using BeladyTable = HeldTable<BeladyEntry>;

class BeladyPolicy final : public CachePolicy {
 public:
  /// Uses `window` or more after now count as none; a sample without a use is
  /// not held. A window of kNever sees everything.
  BeladyPolicy(const CachePolicySpec& spec, AccessTime window)
      : window_(window),
        occupancy_(spec.capacity, spec.unit),
        table_(spec.samples) {}

  void used(SampleId sample, AccessTime now, AccessTime next_use,
            std::vector<SampleId>& drop) override {
    const std::uint32_t slot = table_.find(sample);
    LEAT_CHECK(slot != BeladyTable::kNone);
    if (!is_seen(now, next_use)) {
      drop.push_back(sample);
      return lost(sample);
    }
    place_again(table_[slot].place, {next_use, slot});
  }

  bool admit(SampleId sample, std::uint64_t bytes, AccessTime now,
             AccessTime next_use, std::vector<SampleId>& drop) override {
    if (!is_seen(now, next_use)) return false;
    if (!occupancy_.has_room(bytes) && fits_for_furthest(bytes, next_use)) {
      admit_for_furthest(sample, bytes, next_use, drop);
      return true;
    }
    if (!occupancy_.has_room(bytes) && !make_room(bytes, next_use, drop)) {
      return false;
    }
    const std::uint32_t slot = table_.add(
        sample,
        {.bytes = bytes, .sample = static_cast<std::uint32_t>(sample.value)});
    occupancy_.add(bytes);
    heap_.push_back({next_use, slot});
    rise(heap_.size() - 1, {next_use, slot});
    return true;
  }

  void lost(SampleId sample) override {
    const std::uint32_t slot = table_.find(sample);
    if (slot == BeladyTable::kNone) return;
    occupancy_.remove(table_[slot].bytes);
    const std::size_t place = table_[slot].place;
    table_.remove(sample);
    const Entry last = heap_.back();
    heap_.pop_back();
    if (place < heap_.size()) place_again(place, last);
  }

  void set_capacity(std::uint64_t capacity,
                    std::vector<SampleId>& drop) override {
    occupancy_.set_capacity(capacity);
    while (occupancy_.is_over()) {
      drop.push_back({table_[heap_.front().slot].sample});
      lost(drop.back());
    }
  }

  bool holds(SampleId sample) const override {
    return table_.find(sample) != BeladyTable::kNone;
  }
  std::uint64_t held_bytes() const override { return occupancy_.bytes(); }
  std::uint64_t held_items() const override { return occupancy_.items(); }

 private:
  struct Entry {
    AccessTime next_use = 0;
    std::uint32_t slot = 0;
  };
  static constexpr std::size_t kArity = 4;

  bool is_seen(AccessTime now, AccessTime next_use) const {
    return next_use != kNever && (next_use < now || next_use - now < window_);
  }

  /// Whether it is kept if the furthest one alone is dropped for it.
  bool fits_for_furthest(std::uint64_t bytes, AccessTime next_use) const {
    if (heap_.empty() || heap_.front().next_use <= next_use) return false;
    const std::uint64_t freed =
        occupancy_.cost(table_[heap_.front().slot].bytes);
    return occupancy_.taken() - freed + occupancy_.cost(bytes) <=
           occupancy_.capacity();
  }

  /// One for one, as mostly: it takes the slot and, in the heap, sinks from the
  /// place of the furthest, which is half of dropping and adding.
  void admit_for_furthest(SampleId sample, std::uint64_t bytes,
                          AccessTime next_use, std::vector<SampleId>& drop) {
    const BeladyEntry furthest = table_[heap_.front().slot];
    drop.push_back({furthest.sample});
    occupancy_.remove(furthest.bytes);
    table_.remove({furthest.sample});
    const std::uint32_t slot = table_.add(
        sample,
        {.bytes = bytes, .sample = static_cast<std::uint32_t>(sample.value)});
    occupancy_.add(bytes);
    sink(0, {next_use, slot});
  }

  /// Drops samples used after `next_use`, furthest first, until `bytes` fit. If
  /// that is not enough, puts them back: the order of equals may then differ.
  bool make_room(std::uint64_t bytes, AccessTime next_use,
                 std::vector<SampleId>& drop) {
    if (occupancy_.cost(bytes) > occupancy_.capacity()) return false;
    undo_.clear();
    while (!occupancy_.has_room(bytes) && !heap_.empty() &&
           heap_.front().next_use > next_use) {
      const BeladyEntry& furthest = table_[heap_.front().slot];
      undo_.push_back(
          {{furthest.sample}, furthest.bytes, heap_.front().next_use});
      lost({furthest.sample});
    }
    if (occupancy_.has_room(bytes)) {
      for (const Undo& dropped : undo_) drop.push_back(dropped.sample);
      return true;
    }
    for (const Undo& dropped : undo_) put_back(dropped);
    return false;
  }

  struct Undo {
    SampleId sample;
    std::uint64_t bytes = 0;
    AccessTime next_use = 0;
  };
  void put_back(const Undo& dropped) {
    const std::uint32_t slot = table_.add(
        dropped.sample,
        {.bytes = dropped.bytes,
         .sample = static_cast<std::uint32_t>(dropped.sample.value)});
    occupancy_.add(dropped.bytes);
    heap_.push_back({dropped.next_use, slot});
    rise(heap_.size() - 1, {dropped.next_use, slot});
  }

  void put(std::size_t place, Entry entry) {
    heap_[place] = entry;
    table_[entry.slot].place = static_cast<std::uint32_t>(place);
  }

  void place_again(std::size_t place, Entry entry) {
    if (place > 0 && heap_[(place - 1) / kArity].next_use < entry.next_use) {
      return rise(place, entry);
    }
    sink(place, entry);
  }

  void rise(std::size_t place, Entry entry) {
    while (place > 0) {
      const std::size_t parent = (place - 1) / kArity;
      if (heap_[parent].next_use >= entry.next_use) break;
      put(place, heap_[parent]);
      place = parent;
    }
    put(place, entry);
  }

  void sink(std::size_t place, Entry entry) {
    while (true) {
      const std::size_t first = place * kArity + 1;
      if (first >= heap_.size()) break;
      const std::size_t end = std::min(first + kArity, heap_.size());
      std::size_t latest = first;
      for (std::size_t child = first + 1; child < end; ++child) {
        if (heap_[child].next_use > heap_[latest].next_use) latest = child;
      }
      if (heap_[latest].next_use <= entry.next_use) break;
      put(place, heap_[latest]);
      place = latest;
    }
    put(place, entry);
  }

  const AccessTime window_;
  Occupancy occupancy_;
  BeladyTable table_;
  std::vector<Entry> heap_;  // No child is later than its parent.
  std::vector<Undo> undo_;   // The changes of the running make_room().
};

std::unique_ptr<CachePolicy> make_belady(const CachePolicySpec& spec) {
  return std::make_unique<BeladyPolicy>(spec, kNever);
}

std::unique_ptr<CachePolicy> make_windowed(const CachePolicySpec& spec) {
  auto policy = std::make_unique<BeladyPolicy>(spec, spec.window);
  if (spec.epoch_reads == 0) return policy;
  return make_epoch_times_policy(std::move(policy), spec.epoch_reads);
}

}  // namespace

constinit const CachePolicyKind kBeladyPolicy = {.name = "belady",
                                                 .goes_by_next_use = true,
                                                 .takes_late_uses = true,
                                                 .is_foreseen = true,
                                                 .make = make_belady};

constinit const CachePolicyKind kWindowedBeladyPolicy = {
    .name = "windowed_belady",
    .goes_by_next_use = true,
    .has_window = true,
    .is_for_research = true,
    .is_swept = false,
    .make = make_windowed};

}  // namespace leat
