// The members of shards that the ranks of a job scan together, in order.
#pragma once
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>

#include "leat/base/mutex.h"
#include "leat/base/result.h"
#include "leat/index/job_scan.h"
#include "leat/index/scan_all.h"
#include "leat/index/shard_scan.h"

namespace leat {

/// Scans this rank's shards on a thread of its own and tells the job of them;
/// takes the others' from there.
///
/// Threads: take() one at a time. Lifetime: `job` and what the functions
/// capture outlive it. Destruction stops its thread.
class JobShards {
 public:
  /// Scans all shards of this rank and gives one after the other to `take`.
  using ScanOurs =
      std::function<Result<void>(const TakeShard& take, std::stop_token stop)>;
  /// Scans shards that no other rank tells, at once, and gives them to `take`
  /// in order, by their places in `shards`.
  using ScanLeft = std::function<Result<void>(
      std::span<const std::size_t> shards, const TakeShard& take,
      const std::stop_token&)>;

  /// Scans a listing of `shards` shards.
  JobShards(JobScan& job, std::size_t shards, ScanOurs scan_ours,
            ScanLeft scan_left);
  ~JobShards();
  JobShards(const JobShards&) = delete;
  JobShards& operator=(const JobShards&) = delete;

  /// The members of a shard; to be called for one after the other. Blocks.
  ///
  /// Errors: those of the functions, and of the rank whose shard it is;
  ///         kCancelled
  Result<ScannedShard> take(std::size_t shard, const std::stop_token& stop);

 private:
  void run(const std::stop_token& stop);
  Result<ScannedShard> take_ours(std::size_t shard,
                                 const std::stop_token& stop);
  Result<ScannedShard> take_theirs(std::size_t shard,
                                   const std::stop_token& stop);
  Result<ScannedShard> scan_left(std::size_t shard,
                                 const std::stop_token& stop);

  JobScan& job_;
  const std::size_t shards_;
  const ScanOurs scan_ours_;
  const ScanLeft scan_left_;
  std::map<std::size_t, ScannedShard> left_;  ///< Scanned before their turn.
  Mutex mutex_;
  CondVar changed_;
  std::map<std::size_t, ScannedShard> ours_ LEAT_GUARDED_BY(mutex_);
  std::optional<Error> failed_ LEAT_GUARDED_BY(mutex_);
  bool has_ended_ LEAT_GUARDED_BY(mutex_) = false;
  std::jthread thread_;  // Last: joined before the rest dies.
};

}  // namespace leat
