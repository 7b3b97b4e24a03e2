// Chunks before `next_` have been asked for or passed by; those in `held_` are
// there or coming. A chunk that is let go while it comes lives until its read
// is answered, and one that is being copied until that is done: `held_` is what
// new ones are measured against.

#include "leat/store/layers/read_ahead_store.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "leat/base/check.h"

namespace leat {
namespace {

constexpr std::size_t kNoObject = ~std::size_t{0};
/// Between two looks at whether others wait.
constexpr std::chrono::milliseconds kLookAgain{50};

}  // namespace

ReadAheadStore::ReadAheadStore(std::unique_ptr<Store> inner,
                               ReadAheadOptions options)
    : StoreWrapper(std::move(inner)), options_(std::move(options)) {
  LEAT_CHECK(options_.chunk_bytes > 0);
  for (std::size_t i = 0; i < options_.objects.size(); ++i) {
    numbers_.emplace(options_.objects[i].key, i);
  }
  read_ahead();
}

ReadAheadStore::~ReadAheadStore() {
  stop_holding();
  MutexLock lock(mutex_);
  changed_.wait(lock, [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
    return in_flight_ == 0;
  });
}

std::uint64_t ReadAheadStore::chunk_size(std::size_t object) const {
  const std::uint64_t bytes = options_.objects[object].size_bytes;
  const std::uint64_t chunks =
      std::max<std::uint64_t>(bytes / options_.chunk_bytes, 1);
  return std::max<std::uint64_t>((bytes + chunks - 1) / chunks, 1);
}

ReadAheadStore::ChunkId ReadAheadStore::chunk_at(AheadPlace place) const {
  return {place.object, place.offset / chunk_size(place.object)};
}

AheadPlace ReadAheadStore::begin_of(ChunkId id) const {
  return {id.object, id.chunk * chunk_size(id.object)};
}

/// True if the next chunk, if there is one, fits beside those held.
bool ReadAheadStore::has_memory() const {
  if (next_.object == options_.objects.size()) return true;
  const std::uint64_t size = chunk_size(next_.object);
  return size <= options_.most_bytes &&
         held_bytes_ <= options_.most_bytes - size;
}

/// Goes past the ends of objects, which may be empty, and past those of others.
void ReadAheadStore::pass_by_empty() {
  const std::vector<bool>& skipped = options_.is_skipped;
  while (
      next_.object < options_.objects.size() &&
      ((!skipped.empty() && skipped[next_.object]) ||
       begin_of(next_).offset >= options_.objects[next_.object].size_bytes)) {
    next_ = {next_.object + 1, 0};
  }
}

/// Asks for chunks as far as there is room. One thread at a time; it sees the
/// changes of others meanwhile.
void ReadAheadStore::read_ahead() {
  {
    const MutexLock lock(mutex_);
    if (std::exchange(is_sending_, true)) return;
  }
  while (true) {
    std::shared_ptr<Chunk> chunk;
    ReadRequest request;
    {
      const MutexLock lock(mutex_);
      pass_by_empty();
      if (!holds_ || next_.object == options_.objects.size() ||
          coming_ >= std::max(options_.first_in_flight, come_) ||
          !has_memory()) {
        is_sending_ = false;
        return;
      }
      const ObjectInfo& object = options_.objects[next_.object];
      const std::uint64_t begin = begin_of(next_).offset;
      const std::uint64_t size =
          std::min(chunk_size(next_.object), object.size_bytes - begin);
      chunk = std::make_shared<Chunk>();
      chunk->begin = begin;
      chunk->bytes = Buffer(size);
      held_.emplace(next_, chunk);
      held_bytes_ += size;
      ++next_.chunk;
      ++in_flight_;
      ++coming_;
      ++counts_.sent;
      counts_.sent_bytes += size;
      request.object = {.key = object.key, .etag = object.etag};
      request.offset = begin;
      request.into = chunk->bytes.span();
    }
    inner_->read(std::move(request), stop_.get_token(),
                 [this, chunk](const Result<void>& result) {
                   arrive(*chunk, result.has_value());
                 });
  }
}

void ReadAheadStore::arrive(Chunk& chunk, bool is_there) {
  std::vector<std::function<void()>> waiting;
  {
    const MutexLock lock(mutex_);
    chunk.state = is_there ? Chunk::State::kThere : Chunk::State::kFailed;
    waiting = std::move(chunk.waiting);
    --coming_;
    ++come_;
    changed_.notify_all();
  }
  for (const auto& tell : waiting) tell();
  read_ahead();
  const MutexLock lock(mutex_);
  --in_flight_;  // Last: then this may be gone.
  changed_.notify_all();
}

Result<void> ReadAheadStore::scan(AheadPlace from, std::span<std::byte> into,
                                  const std::stop_token& stop) {
  while (!into.empty()) {
    const ChunkId id = chunk_at(from);
    const std::uint64_t end = begin_of(id).offset + chunk_size(id.object);
    const auto size = std::min<std::uint64_t>(into.size(), end - from.offset);
    LEAT_TRY_VOID(scan_within_chunk(id, from, into.first(size), stop));
    into = into.subspan(size);
    from.offset += size;
  }
  return {};
}

Result<void> ReadAheadStore::scan_within_chunk(ChunkId id, AheadPlace from,
                                               std::span<std::byte> into,
                                               const std::stop_token& stop) {
  std::shared_ptr<Chunk> chunk;
  {
    MutexLock lock(mutex_);
    bool is_awaited = false;
    const auto is_decided = [&]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
      const auto found = held_.find(id);
      if (found != held_.end()) chunk = found->second;
      if (chunk != nullptr) return chunk->state != Chunk::State::kComing;
      // A chunk that is not asked for yet will be, unless there is no room for
      // it.
      return id < next_ || !holds_ ||
             ((hurries_ || is_awaited) && !has_memory()) ||
             chunk_size(id.object) > options_.most_bytes;
    };
    while (!changed_.wait_for(lock, stop, kLookAgain, is_decided)) {
      if (stop.stop_requested()) {
        return Error(ErrorCode::kCancelled, "the scan was ended");
      }
      if (!options_.is_awaited) continue;
      lock.unlock();
      const bool awaited = options_.is_awaited();
      lock.lock();
      is_awaited = awaited;
    }
    if (chunk == nullptr || chunk->state == Chunk::State::kFailed) {
      chunk.reset();
      if (next_ <= id) next_ = {id.object, id.chunk + 1};  // It is passed by.
      ++counts_.sent;
      counts_.sent_bytes += into.size();
    }
  }
  if (chunk != nullptr) {
    std::memcpy(into.data(), chunk->bytes.data() + (from.offset - chunk->begin),
                into.size());
    return {};
  }
  const ObjectInfo& object = options_.objects[id.object];
  ReadRequest request;
  request.object = {.key = object.key, .etag = object.etag};
  request.offset = from.offset;
  request.into = into;
  return read_range(*inner_, std::move(request), stop);
}

void ReadAheadStore::hurry(bool is_wanted) {
  const MutexLock lock(mutex_);
  hurries_ = is_wanted;
  changed_.notify_all();
}

void ReadAheadStore::drop_before(AheadPlace place) {
  while (!held_.empty()) {
    const auto first = held_.begin();
    const AheadPlace end{first->first.object,
                         first->second->begin + first->second->bytes.size()};
    if (end > place) break;
    held_bytes_ -= first->second->bytes.size();
    held_.erase(first);
  }
}

void ReadAheadStore::let_go_before(AheadPlace place) {
  {
    const MutexLock lock(mutex_);
    drop_before(place);
  }
  read_ahead();
}

void ReadAheadStore::set_marks(std::vector<AheadPlace> marks) {
  const MutexLock lock(mutex_);
  marks_ = std::move(marks);
}

void ReadAheadStore::stop_holding() {
  stop_.request_stop();
  const MutexLock lock(mutex_);
  holds_ = false;
  held_.clear();
  held_bytes_ = 0;
  changed_.notify_all();
}

ReadAheadStore::Counts ReadAheadStore::counts() const {
  const MutexLock lock(mutex_);
  return counts_;
}

std::uint64_t ReadAheadStore::held_bytes() const {
  const MutexLock lock(mutex_);
  return held_bytes_;
}

/// A read that waits for the chunks that it lies in.
struct ReadAheadStore::Gathering {
  ReadRequest request;
  std::stop_token stop;
  ReadDone done;
  std::vector<std::shared_ptr<Chunk>> chunks;
  /// Chunks that are coming, and one while read() looks.
  std::atomic<std::size_t> left = 1;

  bool has_failed() const {
    return std::ranges::any_of(chunks, [](const auto& chunk) {
      return chunk->state == Chunk::State::kFailed;
    });
  }

  /// REQUIRES: every chunk is there.
  void copy() const {
    for (const auto& chunk : chunks) {
      const std::uint64_t begin = std::max(request.offset, chunk->begin);
      const std::uint64_t end = std::min(request.offset + request.into.size(),
                                         chunk->begin + chunk->bytes.size());
      std::memcpy(request.into.data() + (begin - request.offset),
                  chunk->bytes.data() + (begin - chunk->begin), end - begin);
    }
  }
};

/// The object that the whole of a read lies in; kNoObject if it is none of
/// ours, or of another version.
std::size_t ReadAheadStore::object_of(const ReadRequest& request) const {
  const auto known = numbers_.find(request.object.key);
  if (known == numbers_.end()) return kNoObject;
  const ObjectInfo& object = options_.objects[known->second];
  const bool lies_within =
      !request.into.empty() && request.offset <= object.size_bytes &&
      request.into.size() <= object.size_bytes - request.offset;
  return lies_within && request.object.etag == object.etag ? known->second
                                                           : kNoObject;
}

/// Lets go of the chunks before the last mark that `place` has reached.
bool ReadAheadStore::pass_marks(AheadPlace place) {
  const auto passed = std::ranges::upper_bound(marks_, place);
  if (passed == marks_.begin()) return false;
  drop_before(*std::prev(passed));
  marks_.erase(marks_.begin(), passed);
  return true;
}

/// The chunks from `place` on; empty unless all are there or coming.
std::vector<std::shared_ptr<ReadAheadStore::Chunk>> ReadAheadStore::find(
    AheadPlace place, std::uint64_t size_bytes) const {
  std::vector<std::shared_ptr<Chunk>> chunks;
  const std::uint64_t end = place.offset + size_bytes;
  for (ChunkId id = chunk_at(place); begin_of(id).offset < end; ++id.chunk) {
    const auto found = held_.find(id);
    if (found == held_.end() || found->second->state == Chunk::State::kFailed) {
      return {};
    }
    chunks.push_back(found->second);
  }
  return chunks;
}

void ReadAheadStore::read(ReadRequest request, std::stop_token stop,
                          ReadDone done) {
  const std::size_t object = holds_ ? object_of(request) : kNoObject;
  if (object == kNoObject) {
    return inner_->read(std::move(request), std::move(stop), std::move(done));
  }
  const AheadPlace place{object, request.offset};
  auto gathering = std::make_shared<Gathering>();
  bool has_passed = false;
  {
    const MutexLock lock(mutex_);
    has_passed = pass_marks(place);
    gathering->chunks = find(place, request.into.size());
  }
  if (has_passed) read_ahead();
  if (gathering->chunks.empty()) {
    return inner_->read(std::move(request), std::move(stop), std::move(done));
  }
  gathering->request = std::move(request);
  gathering->stop = std::move(stop);
  gathering->done = std::move(done);
  const auto come = [this, gathering] {
    if (gathering->left.fetch_sub(1) == 1) finish(*gathering);
  };
  {
    const MutexLock lock(mutex_);
    for (const auto& chunk : gathering->chunks) {
      if (chunk->state != Chunk::State::kComing) continue;
      ++gathering->left;
      chunk->waiting.push_back(come);
    }
  }
  come();
}

void ReadAheadStore::finish(Gathering& gathering) {
  if (gathering.has_failed()) {
    return inner_->read(std::move(gathering.request), std::move(gathering.stop),
                        std::move(gathering.done));
  }
  gathering.copy();
  {
    const MutexLock lock(mutex_);
    ++counts_.answered;
    counts_.answered_bytes += gathering.request.into.size();
  }
  gathering.done({});
}

}  // namespace leat
