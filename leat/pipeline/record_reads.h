// A stage around the reads of a run, if a cache keeps decoded samples.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

#include "leat/pipeline/batch_queue.h"
#include "leat/pipeline/epoch_plan.h"
#include "leat/pipeline/run_context.h"
#include "leat/pipeline/sample_reads.h"

namespace leat {

/// Fetches the columns of samples, as bytes or, if a cache has one, as a
/// record. Bytes that will become a record come with the room for it.
///
/// The tier's index tells immediately whether there is a record, so the memory
/// needed is known: for a record that exists, as much as it or the bytes take,
/// since the bytes replace it if it turns out to be bad; for one that will be
/// made, the bytes and the record.
///
/// Threads: the planner's. Lifetime: the others must outlive it, and it must
/// outlive its reads.
class RecordReads {
 public:
  RecordReads(const RunContext& context, EpochPlan& plan, SampleReads& reads,
              BatchQueue& queue, std::stop_token stop);

  /// Starts fetching a column. REQUIRES and errors: as SampleReads::fetch()
  Result<void> fetch(SampleWork& sample, std::size_t field, ByteRange range);

  /// Whether a cache has all that is read of the sample at a position.
  bool is_cached(std::uint64_t position) const;
  /// Whether another process is about to bring some of it.
  bool is_coming(std::uint64_t position) const;

 private:
  Result<bool> fetch_record(SampleWork& sample, std::size_t field,
                            ByteRange range);
  std::unique_ptr<RecordWork> work_of(const SampleWork& sample,
                                      std::size_t field, ByteRange range);
  Result<void> find(SampleWork& sample, std::size_t field, ByteRange range,
                    std::unique_ptr<RecordWork> work,
                    std::uint64_t record_bytes);
  Result<void> fetch_to_keep(SampleWork& sample, std::size_t field,
                             ByteRange range, std::unique_ptr<RecordWork> work);
  void take_turn(SampleWork& sample, RecordWork& work,
                 std::function<void()> send);
  bool find_made(SampleWork& sample, RecordWork& work,
                 std::function<void()> send, SampleReads::Done done);
  std::vector<RecordId> records_of(std::uint64_t position) const;

  const RunContext& context_;
  EpochPlan& plan_;
  SampleReads& reads_;
  BatchQueue& queue_;
  const std::stop_token stop_;
};

}  // namespace leat
