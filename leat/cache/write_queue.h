// The writes that a cache has decided and not yet done.
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

/// Writes in the order in which they were decided, with copies of the bytes to
/// write. The copies are bounded; a look-up finds them until they are written.
///
/// Threads: any.
class WriteQueue {
 public:
  /// `most_bytes`: of the copies that wait. One alone may be larger.
  explicit WriteQueue(std::uint64_t most_bytes) : most_bytes_(most_bytes) {}

  /// Lets at least so many bytes wait, though `most_bytes` may be less.
  void set_least(std::uint64_t bytes);

  /// Takes room for a copy. False: there is none.
  bool reserve(std::uint64_t bytes);

  /// Queues it, if it has steps, and wakes who writes. Copies `bytes` where one
  /// of the steps is a kPut. `is_reserved`: reserve() has said true; the room
  /// is given back where nothing is to be put.
  void push(CacheWrite write, std::span<const std::byte> bytes,
            bool is_reserved);
  /// The same with no bytes to write; what has no steps is queued all the same.
  void push(CacheWrite write);
  /// Wakes nobody: the caller takes what is queued, and then this.
  void push_own(CacheWrite write);

  /// Nullopt: nothing is queued. Each one taken ends with written().
  std::optional<CacheWrite> take();
  void written(const CacheWrite& write);

  /// Waits until something is queued, or for so long, or for the stop.
  void wait(const std::stop_token& stop, Nanoseconds at_most);
  /// Waits until all that was queued is written.
  void drain();

  /// The copy of what is queued or being written; null: it is not.
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
