#include "leat/pipeline/run_context.h"

#include <fmt/format.h>

#include "leat/runtime/log.h"

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

void RunContext::say_wrong_bytes(SampleId sample) const {
  if (said_wrong_bytes == nullptr || said_wrong_bytes->exchange(true)) return;
  log_warning(fmt::format(
      "the bytes of {} have not the checksum that the catalogue has, and are "
      "read again; from now on this goes unsaid, unless reading again does not "
      "help",
      catalogue.key(sample)));
}

}  // namespace leat
