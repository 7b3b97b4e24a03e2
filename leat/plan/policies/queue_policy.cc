// FIFO and LRU: a queue of the samples held, whose front is dropped.

#include "leat/plan/policies/held_table.h"
#include "leat/plan/policies/kinds.h"

namespace leat {
namespace {

/// The effect of a use on a sample's place in the queue.
enum class OnUse : std::uint8_t {
  kStay,    ///< Nothing: first in, first out.
  kRejoin,  ///< It goes to the back: least recently used.
};

struct Queued {
  std::uint64_t bytes = 0;
  SampleId sample;
  std::uint32_t before = 0;
  std::uint32_t after = 0;
};
using QueueTable = HeldTable<Queued>;

class QueuePolicy final : public CachePolicy {
 public:
  QueuePolicy(const CachePolicySpec& spec, OnUse on_use)
      : on_use_(on_use),
        occupancy_(spec.capacity, spec.unit),
        table_(spec.samples) {}

  void used(SampleId sample, AccessTime, AccessTime,
            std::vector<SampleId>&) override {
    const std::uint32_t slot = table_.find(sample);
    LEAT_CHECK(slot != QueueTable::kNone);
    if (on_use_ == OnUse::kStay) return;
    unlink(slot);
    link_at_back(slot);
  }

  bool admit(SampleId sample, std::uint64_t bytes, AccessTime, AccessTime,
             std::vector<SampleId>& drop) override {
    if (occupancy_.cost(bytes) > occupancy_.capacity()) return false;
    while (!occupancy_.has_room(bytes)) drop_front(drop);
    link_at_back(table_.add(sample, {.bytes = bytes, .sample = sample}));
    occupancy_.add(bytes);
    return true;
  }

  void lost(SampleId sample) override {
    const std::uint32_t slot = table_.find(sample);
    if (slot == QueueTable::kNone) return;
    unlink(slot);
    occupancy_.remove(table_[slot].bytes);
    table_.remove(sample);
  }

  void set_capacity(std::uint64_t capacity,
                    std::vector<SampleId>& drop) override {
    occupancy_.set_capacity(capacity);
    while (occupancy_.is_over()) drop_front(drop);
  }

  bool holds(SampleId sample) const override {
    return table_.find(sample) != QueueTable::kNone;
  }
  std::uint64_t held_bytes() const override { return occupancy_.bytes(); }
  std::uint64_t held_items() const override { return occupancy_.items(); }

 private:
  void drop_front(std::vector<SampleId>& drop) {
    drop.push_back(table_[front_].sample);
    lost(drop.back());
  }

  void unlink(std::uint32_t slot) {
    const Queued& item = table_[slot];
    (item.before == QueueTable::kNone ? front_ : table_[item.before].after) =
        item.after;
    (item.after == QueueTable::kNone ? back_ : table_[item.after].before) =
        item.before;
  }

  void link_at_back(std::uint32_t slot) {
    table_[slot].before = back_;
    table_[slot].after = QueueTable::kNone;
    (back_ == QueueTable::kNone ? front_ : table_[back_].after) = slot;
    back_ = slot;
  }

  const OnUse on_use_;
  Occupancy occupancy_;
  QueueTable table_;
  std::uint32_t front_ = QueueTable::kNone;  // Dropped next.
  std::uint32_t back_ = QueueTable::kNone;
};

template <OnUse on_use>
std::unique_ptr<CachePolicy> make_queue(const CachePolicySpec& spec) {
  return std::make_unique<QueuePolicy>(spec, on_use);
}

}  // namespace

constinit const CachePolicyKind kLruPolicy = {
    .name = "lru",
    .goes_by_order_of_reads = true,
    .make = make_queue<OnUse::kRejoin>};

constinit const CachePolicyKind kFifoPolicy = {
    .name = "fifo",
    .goes_by_order_of_reads = true,
    .is_for_research = true,
    .make = make_queue<OnUse::kStay>};

}  // namespace leat
