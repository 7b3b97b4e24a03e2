// The writes that a cache has decided on and not done yet.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <stop_token>
#include <unordered_map>

#include "leat/base/clock.h"
#include "leat/base/mutex.h"
#include "leat/cache/cache_use.h"

namespace leat {

/// Writes in the order of the decisions, with copies of the bytes. The copies
/// are bounded; look-ups find them until they are written.
///
/// Threads: any.
class WriteQueue {
 public:
  /// `most_bytes`: of the waiting copies. A single one may be larger.
  explicit WriteQueue(std::uint64_t most_bytes) : most_bytes_(most_bytes) {}

  /// Lets at least this many bytes wait, even if `most_bytes` is less.
  void set_least(std::uint64_t bytes);

  /// Reserves room for a copy. False: there is none.
  bool reserve(std::uint64_t bytes);

  /// Queues the write, if it has steps, and wakes the writer. Copies `bytes` if
  /// one of the steps is a kPut. `is_reserved`: reserve() returned true; the
  /// room is given back if nothing is to be put.
  void push(CacheWrite write, std::span<const std::byte> bytes,
            bool is_reserved);
  /// The same without bytes; queues it even if it has no steps.
  void push(CacheWrite write);
  /// Wakes nobody: the caller takes what is queued, and then this.
  void push_own(CacheWrite write);

  /// Nullopt: the queue is empty. Each taken write must end with written().
  std::optional<CacheWrite> take();
  void written(const CacheWrite& write);

  /// Waits until something is queued, `at_most` has passed, or a stop.
  void wait(const std::stop_token& stop, Nanoseconds at_most);
  /// Waits until everything queued is written.
  void drain();

  /// The copy of a record that is queued or being written, or null.
  BufferRef find(const RecordKey& key) const;

 private:
  const std::uint64_t most_bytes_;
  mutable Mutex mutex_;
  std::unordered_map<RecordKey, BufferRef, RecordKeyHash> unwritten_
      LEAT_GUARDED_BY(mutex_);
  std::deque<CacheWrite> queue_ LEAT_GUARDED_BY(mutex_);
  std::uint64_t queued_bytes_ LEAT_GUARDED_BY(mutex_) = 0;
  std::uint64_t least_bytes_ LEAT_GUARDED_BY(mutex_) = 0;
  std::size_t writing_ LEAT_GUARDED_BY(mutex_) = 0;  ///< Taken, not written.
  CondVar queued_;
  CondVar drained_;
};

}  // namespace leat
