// A store that reads objects from front to back before they are requested.
#pragma once
#include <atomic>
#include <compare>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/mutex.h"
#include "leat/store/store_wrapper.h"

namespace leat {

/// The place of a byte in a sequence of objects.
struct AheadPlace {
  std::size_t object = 0;
  std::uint64_t offset = 0;
  friend auto operator<=>(const AheadPlace&, const AheadPlace&) = default;
};

struct ReadAheadOptions {
  std::vector<ObjectInfo> objects;  ///< In the order in which they are read.
  std::uint64_t most_bytes = 0;     ///< Held at once, those in flight included.
  /// An object of B bytes is read as floor(B / chunk_bytes) chunks of similar
  /// size, at least one.
  std::uint64_t chunk_bytes = 8 << 20;
  /// Chunks in flight at first; later as many as have arrived, so that the
  /// first ones do not share the network with all others. At least 1.
  std::size_t first_in_flight = 16;
  /// Whether each object is not read ahead, since others scan it. Empty: all
  /// are.
  std::vector<bool> is_skipped = {};
  /// Called now and then while scan() waits for memory: true if others wait for
  /// its findings. Then scan() continues as after hurry(). May be empty; its
  /// captures must outlive the last scan().
  std::function<bool()> is_awaited = {};
};

/// Reads a sequence of objects once, in order, as far ahead as memory allows,
/// for two readers that want the same bytes one after the other: scan() finds
/// out what an object contains, and read() takes the bytes. Once both have used
/// a chunk, it is released and the next one is read in its place.
///
/// Memory is taken in the objects' order and never delayed by a read: bytes
/// that are not held, because they were released or had no room, are requested
/// from the inner store. Writes, lists and reads of other objects are passed
/// on; after stop_holding() everything is.
///
/// Threads: any; scan() one at a time. Lifetime: see Store. Destruction cancels
/// its own requests.
class ReadAheadStore final : public StoreWrapper {
 public:
  /// Begins to read.
  ReadAheadStore(std::unique_ptr<Store> inner, ReadAheadOptions options);
  ~ReadAheadStore() override;
  ReadAheadStore(const ReadAheadStore&) = delete;
  ReadAheadStore& operator=(const ReadAheadStore&) = delete;

  /// Reads the bytes at `from`, for a caller that goes through the objects from
  /// front to back. Blocks: if memory is full it waits until something is
  /// released, unless hurry() says that this would be in vain.
  ///
  /// REQUIRES: `into` lies within the object. Errors: as Store::read.
  Result<void> scan(AheadPlace from, std::span<std::byte> into,
                    const std::stop_token& stop);
  /// While true, scan() does not wait for memory: it requests only the bytes
  /// that it needs, and holds none.
  void hurry(bool is_wanted);

  /// Nothing before `place` will be read again.
  void let_go_before(AheadPlace place);
  /// The same for all bytes before a mark, once read() is called at or behind
  /// it. In ascending order; they replace earlier ones.
  void set_marks(std::vector<AheadPlace> marks);
  /// Releases everything and stops reading ahead.
  void stop_holding();

  /// Counts of the reads it sent and of those it saved.
  struct Counts {
    std::uint64_t sent = 0;  ///< Reads of its own: ahead, and by scan().
    std::uint64_t sent_bytes = 0;
    std::uint64_t answered = 0;  ///< Calls of read() that it had the bytes for.
    std::uint64_t answered_bytes = 0;
  };
  Counts counts() const;
  std::uint64_t held_bytes() const;

  void read(ReadRequest request, std::stop_token stop, ReadDone done) override;
  /// The store itself, for reads that neither read ahead nor release
  /// anything.
  Store& inner() { return *inner_; }

 private:
  /// An object and one of its chunks.
  struct ChunkId {
    std::size_t object = 0;
    std::uint64_t chunk = 0;
    friend auto operator<=>(const ChunkId&, const ChunkId&) = default;
  };
  struct Chunk {
    std::uint64_t begin = 0;  ///< In its object.
    Buffer bytes;
    enum class State { kComing, kThere, kFailed } state = State::kComing;
    std::vector<std::function<void()>> waiting;  ///< Called once it is decided.
  };
  struct Gathering;

  std::uint64_t chunk_size(std::size_t object) const;
  ChunkId chunk_at(AheadPlace place) const;
  AheadPlace begin_of(ChunkId id) const;
  std::size_t object_of(const ReadRequest& request) const;
  bool pass_marks(AheadPlace place) LEAT_REQUIRES(mutex_);
  std::vector<std::shared_ptr<Chunk>> find(AheadPlace place,
                                           std::uint64_t size_bytes) const
      LEAT_REQUIRES(mutex_);
  void finish(Gathering& gathering);
  bool has_memory() const LEAT_REQUIRES(mutex_);
  void pass_by_empty() LEAT_REQUIRES(mutex_);
  void read_ahead();
  void arrive(Chunk& chunk, bool is_there);
  void drop_before(AheadPlace place) LEAT_REQUIRES(mutex_);
  Result<void> scan_within_chunk(ChunkId id, AheadPlace from,
                                 std::span<std::byte> into,
                                 const std::stop_token& stop);

  const ReadAheadOptions options_;
  // The index of each key.
  std::unordered_map<std::string, std::size_t> numbers_;
  std::stop_source stop_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::map<ChunkId, std::shared_ptr<Chunk>> held_ LEAT_GUARDED_BY(mutex_);
  std::uint64_t held_bytes_ LEAT_GUARDED_BY(mutex_) = 0;
  ChunkId next_ LEAT_GUARDED_BY(mutex_);            ///< The next to read ahead.
  std::size_t coming_ LEAT_GUARDED_BY(mutex_) = 0;  ///< Chunks.
  std::size_t come_ LEAT_GUARDED_BY(mutex_) = 0;
  /// Chunks whose arrive() has not returned: until then this must stay alive.
  std::size_t in_flight_ LEAT_GUARDED_BY(mutex_) = 0;
  bool is_sending_ LEAT_GUARDED_BY(mutex_) = false;  ///< In read_ahead().
  std::atomic<bool> holds_ = true;                   // Changed under `mutex_`.
  bool hurries_ LEAT_GUARDED_BY(mutex_) = false;
  std::vector<AheadPlace> marks_ LEAT_GUARDED_BY(mutex_);
  Counts counts_ LEAT_GUARDED_BY(mutex_);
};

}  // namespace leat
