// Which samples are held, and in which of the policy's slots.
#pragma once
#include <cstdint>
#include <vector>

#include "leat/base/check.h"
#include "leat/plan/cache_policy.h"

namespace leat {

/// The capacity of a tier and how much of it is used.
class Occupancy {
 public:
  Occupancy(std::uint64_t capacity, CapacityUnit unit)
      : capacity_(capacity), unit_(unit) {}

  /// The capacity that a sample of this size takes.
  std::uint64_t cost(std::uint64_t bytes) const {
    return unit_ == CapacityUnit::kBytes ? bytes : 1;
  }
  std::uint64_t taken() const {
    return unit_ == CapacityUnit::kBytes ? bytes_ : items_;
  }
  std::uint64_t capacity() const { return capacity_; }
  /// May be less than is used: then nothing more fits.
  void set_capacity(std::uint64_t capacity) { capacity_ = capacity; }
  bool is_over() const { return taken() > capacity_; }
  bool has_room(std::uint64_t bytes) const {
    return !is_over() && cost(bytes) <= capacity_ - taken();
  }
  void add(std::uint64_t bytes) {
    bytes_ += bytes;
    ++items_;
  }
  void remove(std::uint64_t bytes) {
    bytes_ -= bytes;
    --items_;
  }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t items() const { return items_; }

 private:
  std::uint64_t capacity_;
  CapacityUnit unit_;
  std::uint64_t bytes_ = 0;
  std::uint64_t items_ = 0;
};

/// A number for each held sample, and a `Slot` for the number. Numbers are
/// reused, so `slots` never grows past the most samples ever held.
template <class Slot>
class HeldTable {
 public:
  static constexpr std::uint32_t kNone = 0xffffffff;

  explicit HeldTable(std::uint64_t samples) : samples_(samples) {}

  /// No sample from here on is held.
  std::uint64_t end() const { return slot_of_.size(); }
  /// The number of a sample's slot, or kNone.
  std::uint32_t find(SampleId sample) const {
    LEAT_CHECK(sample.value < samples_);
    return sample.value < slot_of_.size() ? slot_of_[sample.value] : kNone;
  }
  Slot& operator[](std::uint32_t slot) { return slots_[slot]; }
  const Slot& operator[](std::uint32_t slot) const { return slots_[slot]; }

  /// REQUIRES: find(sample) == kNone.
  std::uint32_t add(SampleId sample, const Slot& slot) {
    LEAT_CHECK(find(sample) == kNone);
    std::uint32_t number = 0;
    if (free_.empty()) {
      number = static_cast<std::uint32_t>(slots_.size());
      slots_.push_back(slot);
    } else {
      number = free_.back();
      free_.pop_back();
      slots_[number] = slot;
    }
    if (sample.value >= slot_of_.size()) {
      slot_of_.resize(sample.value + 1, kNone);
    }
    slot_of_[sample.value] = number;
    return number;
  }
  /// REQUIRES: find(sample) != kNone.
  void remove(SampleId sample) {
    free_.push_back(slot_of_[sample.value]);
    slot_of_[sample.value] = kNone;
  }

 private:
  std::uint64_t samples_;
  std::vector<std::uint32_t> slot_of_;  // Up to the largest that was held.
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
};

}  // namespace leat
