#include "leat/pipeline/batch.h"

#include <algorithm>

#include "leat/pipeline/slot_pool.h"

namespace leat {
namespace {

SlotRef copy_of(const SlotRef& slot, SlotPool& slots) {
  if (slot == nullptr) return nullptr;
  SlotRef copy = slots.take(slot->bytes().size());
  std::ranges::copy(slot->bytes(), copy->bytes().begin());
  return copy;
}

}  // namespace

Batch copy_of(const Batch& batch, SlotPool& slots) {
  Batch copy = batch;
  for (FieldArray& field : copy.fields) {
    field.values = copy_of(field.values, slots);
    field.offsets = copy_of(field.offsets, slots);
    field.shapes = copy_of(field.shapes, slots);
  }
  return copy;
}

}  // namespace leat
