// Makes records for a cache: once the bytes have come, before the ops run.
#pragma once
#include <cstddef>
#include <optional>
#include <span>

#include "leat/pipeline/batch_slots.h"
#include "leat/pipeline/decoded_form.h"
#include "leat/pipeline/run_context.h"
#include "leat/pipeline/sample_work.h"

namespace leat {

/// Makes the record of a column and offers it to the cache. An error here never
/// fails the sample: its bytes are kept, and the whole chain runs on them.
///
/// Threads: one of the executor's, for one sample.
class RecordMaker {
 public:
  RecordMaker(const RunContext& context, BatchSlots& slots, SampleRandom random,
              std::size_t thread)
      : context_(context), slots_(slots), random_(random), thread_(thread) {}

  /// Makes the record of a column that should have one.
  void make(SampleWork& sample, SampleWork::Fetched& fetched);
  /// Reports the costs of a sample that was tried in both forms.
  static void end_trial(RecordWork& work);

 private:
  void count_record(std::size_t bytes, Nanoseconds took);
  bool finds_room(const SampleWork& sample, const SampleWork::Fetched& fetched,
                  RecordWork& work) const;
  std::optional<std::span<const std::byte>> made_record(
      const SampleWork::Fetched& fetched, RecordWork& work);
  double try_whole(const SampleWork& sample,
                   const SampleWork::Fetched& fetched);

  const RunContext& context_;
  BatchSlots& slots_;
  const SampleRandom random_;
  const std::size_t thread_;
};

/// Measures the core time of the ops behind the cut, for a trial; null: none.
class RestTimer {
 public:
  explicit RestTimer(FormTrial* trial);
  ~RestTimer();
  RestTimer(const RestTimer&) = delete;
  RestTimer& operator=(const RestTimer&) = delete;

 private:
  FormTrial* const trial_;
  const double began_;
};

}  // namespace leat
