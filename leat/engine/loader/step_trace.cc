#include "leat/engine/loader/step_trace.h"

#include <vector>

namespace leat {

Result<void> StepTrace::open(const std::string& file, std::uint32_t rank) {
  if (file.empty()) return {};
  LEAT_TRY(file_, Trace::open(file, rank));
  return {};
}

void StepTrace::add(const BatchWork& work, Interval wait) {
  const bool is_watched = recent_.is_watched(wait.end);
  if (file_ == nullptr && !is_watched) return;
  std::vector<TracedSample> samples;
  samples.reserve(work.size());
  for (std::size_t row = 0; row < work.size(); ++row) {
    samples.push_back({work.batch.ids[row], &work.times_of(row)});
  }
  const TracedBatch batch{.epoch = work.epoch,
                          .step = work.step,
                          .samples = samples,
                          .ready = work.ready,
                          .wait = wait};
  if (file_ != nullptr) file_->add(batch);
  if (is_watched) recent_.add(batch);
}

void StepTrace::end_epoch(TimePoint asked) {
  if (file_ != nullptr) file_->end_epoch(asked);
}

}  // namespace leat
