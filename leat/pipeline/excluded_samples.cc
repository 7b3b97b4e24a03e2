#include "leat/pipeline/excluded_samples.h"

#include <utility>

namespace leat {

std::optional<Excluded> ExcludedSamples::find(SampleId sample) const {
  const MutexLock lock(mutex_);
  const auto chunk = chunks_.find(sample.value / kChunk);
  if (chunk == chunks_.end()) return std::nullopt;
  const std::size_t bit = sample.value % kChunk;
  if (chunk->second->bad[bit]) return Excluded::kBad;
  if (chunk->second->skipped[bit]) return Excluded::kSkipped;
  return std::nullopt;
}

bool ExcludedSamples::put(SampleId sample, Excluded why) {
  std::unique_ptr<Chunk>& chunk = chunks_[sample.value / kChunk];
  if (chunk == nullptr) chunk = std::make_unique<Chunk>();
  const std::size_t bit = sample.value % kChunk;
  if (chunk->bad[bit] || chunk->skipped[bit]) return false;
  const bool is_bad = why == Excluded::kBad;
  (is_bad ? chunk->bad : chunk->skipped).set(bit);
  ++(is_bad ? bad_ : skipped_);
  return true;
}

void ExcludedSamples::know(SampleId sample, Excluded why) {
  const MutexLock lock(mutex_);
  (void)put(sample, why);
}

void ExcludedSamples::add(const Exclusion& exclusion) {
  const MutexLock lock(mutex_);
  if (put(exclusion.sample, exclusion.why) && found_) found_(exclusion);
}

std::uint64_t ExcludedSamples::count(Excluded why) const {
  const MutexLock lock(mutex_);
  return why == Excluded::kBad ? bad_ : skipped_;
}

}  // namespace leat
