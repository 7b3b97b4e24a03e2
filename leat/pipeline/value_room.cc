#include "leat/pipeline/value_room.h"

#include <algorithm>
#include <utility>

#include "leat/pipeline/value_rows.h"

namespace leat {

void ValueRoom::begin(std::size_t fields, std::size_t rows,
                      std::uint64_t guessed_bytes) {
  const MutexLock lock(mutex_);
  rows_ = rows;
  fields_.resize(fields);
  room_bytes_ = guessed_bytes;
}

ValueRoom::Found ValueRoom::find(std::size_t field, const TensorSpec& spec,
                                 Joining joining, const PadRule& pad_rule,
                                 MemoryBudget& budget) {
  const MutexLock lock(mutex_);
  count(fields_[field], spec, joining, pad_rule);
  const std::uint64_t needed = sum();
  if (needed <= room_bytes_) return Found::kYes;
  if (needed > budget.capacity_bytes()) return Found::kTooMuch;
  std::optional<Reservation> more = budget.try_reserve(needed - room_bytes_);
  if (!more) return Found::kNotNow;
  room_bytes_ = needed;
  more_.push_back(*std::move(more));
  return Found::kYes;
}

void ValueRoom::count(FieldNeeds& needs, const TensorSpec& spec,
                      Joining joining, const PadRule& pad_rule) const {
  needs.values_bytes += spec.size_bytes();
  if (joining != Joining::kPadded ||
      spec.shape.size() < pad_rule.height_at + 2) {
    needs.joined_bytes += spec.size_bytes();
    return;
  }
  const std::size_t at = pad_rule.height_at;
  needs.height = std::max(needs.height, spec.shape[at]);
  needs.width = std::max(needs.width, spec.shape[at + 1]);
  TensorSpec padded = spec;
  padded.shape[at] = padded_side(needs.height, pad_rule, 0);
  padded.shape[at + 1] = padded_side(needs.width, pad_rule, 1);
  needs.joined_bytes = rows_ * padded.size_bytes();
}

std::uint64_t ValueRoom::sum() const {
  std::uint64_t bytes = 0;
  for (const FieldNeeds& needs : fields_) {
    bytes += needs.values_bytes + needs.joined_bytes;
  }
  return bytes;
}

std::uint64_t ValueRoom::needed_bytes() const {
  const MutexLock lock(mutex_);
  return sum();
}

void ValueRoom::release() {
  const MutexLock lock(mutex_);
  more_.clear();
}

}  // namespace leat
