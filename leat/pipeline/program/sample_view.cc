#include "leat/pipeline/program/sample_view.h"

#include <algorithm>
#include <utility>

#include "leat/base/errors.h"

namespace leat {

Result<void> SampleView::meet(Met met) {
  const auto first = std::ranges::find(met_, met.op_index, &Met::op_index);
  if (first == met_.end()) {
    met_.push_back(std::move(met));
    return {};
  }
  if (first->width == met.width && first->height == met.height) return {};
  return corrupt(
      "\"{}\" has {} x {} pixels and \"{}\" {} x {} where {} (op {}) moves "
      "both alike: make them of one size, such as with "
      "leat.ops.Resize((height, width)) before it, or give each an op of its "
      "own (field=, independent=True)",
      first->field, first->width, first->height, met.field, met.width,
      met.height, met.op, met.op_index);
}

std::vector<Value>* SampleView::made_by(const void* program) {
  const auto found = std::ranges::find(made_, program, &Made::program);
  return found == made_.end() ? nullptr : &found->values;
}

std::vector<Value>& SampleView::keep(const void* program,
                                     std::vector<Value> values) {
  made_.push_back({program, std::move(values)});
  return made_.back().values;
}

void SampleView::forget() {
  made_.clear();
  met_.clear();
}

}  // namespace leat
