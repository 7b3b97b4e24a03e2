#include "leat/index/scan_all.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "leat/base/mutex.h"
#include "leat/dataset/catalogue.h"
#include "leat/runtime/start_thread.h"
#include "leat/runtime/thread_name.h"

namespace leat {
namespace {

using Scanned = Result<ScannedShard>;

constexpr std::size_t kAheadPerThread = 4;

/// Workers take shards in order; the owner collects results in order.
class ShardScans {
 public:
  ShardScans(Store& store, std::string_view prefix,
             std::span<const ShardToScan> shards, std::size_t threads)
      : store_(store),
        prefix_(prefix),
        shards_(shards),
        most_ahead_(threads * kAheadPerThread) {
    for (std::size_t i = 0; i < threads; ++i) {
      const auto scans = [this, i] {
        name_this_thread("leat-index-" + std::to_string(i));
        work();
      };
      if (i == 0) {
        threads_.push_back(start_thread(scans));
      } else {
        (void)try_start_thread(threads_, scans);  // Fewer will do.
      }
    }
  }
  ~ShardScans() { stop_.request_stop(); }
  ShardScans(const ShardScans&) = delete;
  ShardScans& operator=(const ShardScans&) = delete;

  void request_stop() { stop_.request_stop(); }

  /// Waits for shard `index`. To be called for 0, 1, 2, …
  Scanned take(std::size_t index) {
    MutexLock lock(mutex_);
    changed_.wait(
        lock, stop_.get_token(),
        [&]() LEAT_NO_THREAD_SAFETY_ANALYSIS { return done_.contains(index); });
    const auto found = done_.find(index);
    if (found == done_.end()) {
      return Error(ErrorCode::kCancelled, "indexing was stopped");
    }
    Scanned scanned = std::move(found->second);
    done_.erase(found);
    taken_ = index + 1;
    changed_.notify_all();
    return scanned;
  }

 private:
  void work() {
    while (const auto index = next()) {
      Scanned scanned = scan_shard(store_, in_store(prefix_, shards_[*index]),
                                   stop_.get_token());
      const MutexLock lock(mutex_);
      done_.emplace(*index, std::move(scanned));
      changed_.notify_all();
    }
  }

  /// Waits until the next shard may be scanned; nullopt when there is none.
  std::optional<std::size_t> next() {
    MutexLock lock(mutex_);
    changed_.wait(lock, stop_.get_token(),
                  [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
                    return next_ < taken_ + most_ahead_;
                  });
    if (stop_.stop_requested() || next_ == shards_.size()) return std::nullopt;
    return next_++;
  }

  Store& store_;
  const std::string_view prefix_;
  const std::span<const ShardToScan> shards_;
  const std::size_t most_ahead_;
  std::stop_source stop_;

  Mutex mutex_;
  CondVar changed_;
  std::map<std::size_t, Scanned> done_ LEAT_GUARDED_BY(mutex_);
  std::size_t next_ LEAT_GUARDED_BY(mutex_) = 0;
  std::size_t taken_ LEAT_GUARDED_BY(mutex_) = 0;
  std::vector<std::jthread> threads_;  // Last: joined before the rest dies.
};

}  // namespace

Result<void> scan_all(Store& store, std::string_view prefix,
                      std::span<const ShardToScan> shards, std::size_t threads,
                      const TakeShard& take, const std::stop_token& stop) {
  ShardScans scans(store, prefix, shards,
                   std::clamp<std::size_t>(threads, 1, shards.size()));
  const std::stop_callback on_stop(stop, [&] { scans.request_stop(); });
  for (std::size_t i = 0; i < shards.size(); ++i) {
    LEAT_TRY(ScannedShard scanned, scans.take(i));
    LEAT_TRY_VOID(take(i, std::move(scanned)));
  }
  return {};
}

}  // namespace leat
