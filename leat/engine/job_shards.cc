#include "leat/engine/job_shards.h"

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

#include "leat/base/errors.h"
#include "leat/runtime/start_thread.h"
#include "leat/runtime/thread_name.h"

namespace leat {
namespace {

/// A rank says that its training waits only after a moment: then others read
/// headers alone, and the bytes once more.
constexpr Nanoseconds kAskAfter = std::chrono::seconds(1);
/// A shard that no other rank tells is scanned together with those of the next,
/// up to this many, that no rank tells either: the headers of one shard can
/// only be read one after the other.
constexpr std::size_t kLeftAhead = 16;

}  // namespace

JobShards::JobShards(JobScan& job, std::size_t shards, ScanOurs scan_ours,
                     ScanLeft scan_left)
    : job_(job),
      shards_(shards),
      scan_ours_(std::move(scan_ours)),
      scan_left_(std::move(scan_left)),
      thread_(start_thread([this](const std::stop_token& stop) {
        name_this_thread("leat-scan-ours");
        run(stop);
      })) {}

JobShards::~JobShards() { thread_.request_stop(); }

void JobShards::run(const std::stop_token& stop) {
  std::size_t next = job_.rank().rank;  // The shard that is scanned now.
  const TakeShard take = [&](std::size_t shard,
                             ScannedShard scanned) -> Result<void> {
    job_.tell(shard, scanned);
    next = shard + job_.rank().world_size;
    job_.begin_shard(next);
    const MutexLock lock(mutex_);
    ours_.emplace(shard, std::move(scanned));
    changed_.notify_all();
    return {};
  };
  job_.begin_shard(next);
  Result<void> scanned = [&]() -> Result<void> {
    try {
      return scan_ours_(take, stop);
    } catch (const std::system_error& error) {  // No threads are left.
      return exhausted(error.what());
    }
  }();
  if (!scanned && scanned.error().code() != ErrorCode::kCancelled) {
    job_.tell(next, scanned.error());
  }
  const MutexLock lock(mutex_);
  if (!scanned) failed_ = std::move(scanned).error();
  has_ended_ = true;
  changed_.notify_all();
}

Result<ScannedShard> JobShards::take(std::size_t shard,
                                     const std::stop_token& stop) {
  return job_.is_ours(shard) ? take_ours(shard, stop)
                             : take_theirs(shard, stop);
}

Result<ScannedShard> JobShards::take_ours(std::size_t shard,
                                          const std::stop_token& stop) {
  MutexLock lock(mutex_);
  changed_.wait(lock, stop, [&]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
    return has_ended_ || ours_.contains(shard);
  });
  const auto found = ours_.find(shard);
  if (found != ours_.end()) {
    ScannedShard scanned = std::move(found->second);
    ours_.erase(found);
    return scanned;
  }
  if (failed_) return *failed_;
  return Error(ErrorCode::kCancelled, "the scan was ended");
}

Result<ScannedShard> JobShards::take_theirs(std::size_t shard,
                                            const std::stop_token& stop) {
  if (auto found = left_.extract(shard)) return std::move(found.mapped());
  const SteadyClock clock;
  const TimePoint begin = clock.now();
  for (std::size_t looks = 0; !stop.stop_requested(); ++looks) {
    ScanEntry entry;
    switch (job_.look_at(shard, entry)) {
      case JobScan::Sight::kThere:
        if (entry.error) return *std::move(entry.error);
        return std::move(entry.shard);
      case JobScan::Sight::kLeft:
        return scan_left(shard, stop);
      case JobScan::Sight::kComing:
        break;
    }
    if (clock.now() - begin > kAskAfter) job_.ask_for(shard);
    MutexLock lock(mutex_);
    changed_.wait_for(lock, stop, job_.pause(looks), [] { return false; });
  }
  return Error(ErrorCode::kCancelled, "the scan was ended");
}

/// Scans this shard, and with it those of the next that nobody tells either.
Result<ScannedShard> JobShards::scan_left(std::size_t shard,
                                          const std::stop_token& stop) {
  std::vector<std::size_t> left{shard};
  const std::size_t end = std::min(shards_, shard + kLeftAhead);
  for (std::size_t next = shard + 1; next < end; ++next) {
    ScanEntry entry;
    if (!job_.is_ours(next) && !left_.contains(next) &&
        job_.look_at(next, entry) == JobScan::Sight::kLeft) {
      left.push_back(next);
    }
  }
  const TakeShard take = [&](std::size_t place,
                             ScannedShard scanned) -> Result<void> {
    left_.emplace(left[place], std::move(scanned));
    return {};
  };
  Result<void> scanned = scan_left_(left, take, stop);
  // The error of a later shard waits for that one's turn.
  if (auto found = left_.extract(shard)) return std::move(found.mapped());
  return scanned.error();
}

}  // namespace leat
