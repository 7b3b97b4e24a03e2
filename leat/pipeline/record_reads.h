// A stage around the reads of a run, where a cache keeps what was made of them.
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

/// Fetches the columns of samples, as bytes or, where a cache has it, as a
/// record. Bytes that are to become a record come with the room for one.
///
/// Whether there is a record the index of the tier says at once, so it is known
/// what to reserve: for a record that is there, as much as it or the bytes
/// take, for the bytes come into the same place should it turn out to be bad;
/// for one that is to be made, the bytes and the record.
///
/// Threads:  the planner's.
/// Lifetime: the others outlive it, and it every read it sent.
class RecordReads {
 public:
  RecordReads(const RunContext& context, EpochPlan& plan, SampleReads& reads,
              BatchQueue& queue, std::stop_token stop);

  /// Puts a column on its way. REQUIRES and errors: as SampleReads::fetch()
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
