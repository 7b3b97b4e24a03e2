// Reads the batches of a dataset in C++.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "leat/api/reader_options.h"
#include "leat/base/ids.h"
#include "leat/base/result.h"
#include "leat/engine/loader_stats.h"
#include "leat/pipeline/batch.h"

namespace leat {

/// Reads the batches of one rank, epoch after epoch.
///
///     LEAT_TRY(BatchReader reader,
///              BatchReader::open("s3://bucket/train", {.batch_size = 256}));
///     LEAT_TRY_VOID(reader.begin());
///     while (true) {
///       LEAT_TRY(const std::optional<Batch> batch, reader.next());
///       if (!batch) break;
///       train(*batch);
///     }
///
/// Threads:  begin(), next() and moves belong to one thread at a time; the
///           other calls may come from any, also while next() waits.
/// Lifetime: batches outlive it. Destruction stops all that runs. In a forked
///           child every call that returns a Result fails, and any other may
///           wait forever. REQUIRES of each call: not moved from.
class BatchReader {
 public:
  /// Opens the dataset at `url` (s3://, gs://, az://, http(s)://, file:// or a
  /// path), lists its objects if it has no catalogue yet, and starts the
  /// threads. Blocks; `stop` ends the waiting.
  ///
  /// Errors:
  ///   kInvalidArgument  an invalid option or URL, named with its
  ///                     remedy; no sample at all
  ///   kNotFound, kPermissionDenied, kUnavailable, kCancelled, …
  ///                     what the store said once retries were exhausted
  static Result<BatchReader> open(std::string_view url,
                                  const ReaderOptions& options,
                                  const std::stop_token& stop = {});
  ~BatchReader();
  BatchReader(BatchReader&& other) noexcept;
  BatchReader& operator=(BatchReader&& other) noexcept;

  /// Starts the next epoch if the running one has delivered a batch, otherwise
  /// continues it; after load_state(), at the position loaded.
  Result<void> begin();

  /// Waits for the next batch; nullopt once the epoch has ended.
  ///
  /// Errors:
  ///   kInvalidArgument    nothing was begun, or this is a forked child
  ///   kCorrupt, kNotFound a bad sample, named with its cause
  ///   kResourceExhausted  one batch does not fit into `memory_bytes`, or the
  ///                       system refuses its memory
  ///   others              what the store said once retries were exhausted
  Result<std::optional<Batch>> next();

  /// begin() will start `epoch`, unless load_state() has set a position in it.
  Result<void> set_epoch(std::uint64_t epoch);

  /// The delivered position, as JSON: good for every rank and any world size.
  std::string state() const;
  /// Errors: kInvalidArgument if it is not a state, or is one of other data,
  /// seed or shuffle; the message names both values
  Result<void> load_state(std::string_view json);

  /// Batches that this rank gets in a whole epoch; nullopt while shards have
  /// yet to be indexed.
  std::optional<std::uint64_t> length() const;
  /// The names of a batch's fields, in their order; none while shards have yet
  /// to be indexed.
  std::vector<std::string> field_names() const;
  Rank rank() const;

  /// One entry for each epoch that has begun, the latest last.
  std::vector<EpochStats> stats() const;

 private:
  struct Running;
  explicit BatchReader(std::unique_ptr<Running> running);

  std::unique_ptr<Running> running_;
};

}  // namespace leat
