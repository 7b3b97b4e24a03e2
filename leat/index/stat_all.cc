#include "leat/index/stat_all.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "leat/base/mutex.h"
#include "leat/dataset/catalogue.h"
#include "leat/runtime/start_thread.h"
#include "leat/runtime/thread_name.h"

namespace leat {
namespace {

constexpr std::chrono::milliseconds kTellEvery{200};

/// Workers take keys in order until one fails or somebody stops them.
class Stats {
 public:
  Stats(Store& store, std::string_view prefix,
        std::span<const std::string> keys)
      : store_(store), prefix_(prefix), keys_(keys), found_(keys.size()) {}
  ~Stats() { request_stop(); }
  Stats(const Stats&) = delete;
  Stats& operator=(const Stats&) = delete;

  void start(std::size_t threads) {
    {
      const MutexLock lock(mutex_);
      working_ = threads;
    }
    for (std::size_t i = 0; i < threads; ++i) {
      const auto asks = [this, i] {
        name_this_thread("leat-stat-" + std::to_string(i));
        work();
      };
      if (i == 0) {
        threads_.push_back(start_thread(asks));
      } else if (!try_start_thread(threads_, asks)) {
        const MutexLock lock(mutex_);
        --working_;
      }
    }
  }

  void request_stop() { stop_.request_stop(); }

  /// True once all workers are done. Waits a while.
  bool wait(std::uint64_t& done) {
    MutexLock lock(mutex_);
    changed_.wait_for(
        lock, kTellEvery,
        [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS { return working_ == 0; });
    done = done_;
    return working_ == 0;
  }

  /// The index of the first key that failed, and why.
  std::optional<std::pair<std::size_t, Error>> failure() {
    const MutexLock lock(mutex_);
    return failure_;
  }

  bool is_complete() {
    const MutexLock lock(mutex_);
    return done_ == keys_.size();
  }

  /// REQUIRES: wait() has returned true.
  std::vector<ObjectInfo> take() { return std::move(found_); }

 private:
  void work() {
    while (const auto index = next()) {
      Result<ObjectInfo> info =
          store_.stat(key_in_store(prefix_, keys_[*index]), stop_.get_token());
      const MutexLock lock(mutex_);
      if (!info) {
        if (!failure_ || *index < failure_->first) {
          failure_.emplace(*index, std::move(info).error());
        }
        next_ = keys_.size();
        break;
      }
      found_[*index] = *std::move(info);
      ++done_;
    }
    const MutexLock lock(mutex_);
    if (--working_ == 0) changed_.notify_all();
  }

  std::optional<std::size_t> next() {
    const MutexLock lock(mutex_);
    if (stop_.stop_requested() || next_ >= keys_.size()) return std::nullopt;
    return next_++;
  }

  Store& store_;
  const std::string_view prefix_;
  const std::span<const std::string> keys_;
  std::vector<ObjectInfo> found_;  // Each worker writes places of its own.
  std::stop_source stop_;

  Mutex mutex_;
  CondVar changed_;
  std::size_t next_ LEAT_GUARDED_BY(mutex_) = 0;
  std::size_t working_ LEAT_GUARDED_BY(mutex_) = 0;
  std::uint64_t done_ LEAT_GUARDED_BY(mutex_) = 0;
  std::optional<std::pair<std::size_t, Error>> failure_ LEAT_GUARDED_BY(mutex_);
  std::vector<std::jthread> threads_;  // Last: joined before the rest dies.
};

}  // namespace

Result<std::vector<ObjectInfo>> stat_all(
    Store& store, std::string_view prefix, std::span<const std::string> keys,
    const std::function<std::string(std::size_t)>& doing,
    const StatAllOptions& options, const std::stop_token& stop) {
  if (keys.empty()) return std::vector<ObjectInfo>();
  Stats stats(store, prefix, keys);
  const std::stop_callback on_stop(stop, [&] { stats.request_stop(); });
  stats.start(std::clamp<std::size_t>(options.threads, 1, keys.size()));
  std::uint64_t done = 0;
  while (!stats.wait(done)) {
    if (options.progress) options.progress(done);
  }
  if (auto failure = stats.failure()) {
    return std::move(failure->second).while_doing(doing(failure->first));
  }
  if (!stats.is_complete()) {
    return Error(ErrorCode::kCancelled, "asking for sizes was stopped");
  }
  if (options.progress) options.progress(done);
  return stats.take();
}

}  // namespace leat
