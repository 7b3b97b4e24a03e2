#include "leat/pipeline/run_context.h"

namespace leat {

std::optional<LearnedShapes::Shape> LearnedShapes::find(
    std::size_t field) const {
  const MutexLock lock(mutex_);
  for (const auto& [known, shape] : shapes_) {
    if (known == field) return shape;
  }
  return std::nullopt;
}

void LearnedShapes::learn(std::size_t field, Shape shape) {
  const MutexLock lock(mutex_);
  for (const auto& known : shapes_) {
    if (known.first == field) return;
  }
  shapes_.emplace_back(field, std::move(shape));
}

}  // namespace leat
