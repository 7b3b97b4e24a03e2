#include "leat/engine/loader/kept_batches.h"

#include <fmt/format.h>

#include "leat/runtime/log.h"

namespace leat {
namespace {

// A training loop holds fewer on purpose: the batch it works on, the one
// before, and a copy under way.
constexpr std::size_t kManyBatches = 16;

}  // namespace

void KeptBatches::add(const Batch& batch) {
  std::erase_if(slots_, [](const auto& slot) { return slot.expired(); });
  for (const FieldArray& field : batch.fields) {
    if (field.values == nullptr) continue;
    slots_.emplace_back(field.values);
    break;
  }
  if (slots_.size() <= kManyBatches || has_warned_) return;
  has_warned_ = true;
  log_warning(
      fmt::format("{} batches are being kept, each in memory of its own beside "
                  "memory=; copy what you need and let batches go",
                  slots_.size()));
}

}  // namespace leat
