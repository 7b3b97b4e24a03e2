#include "leat/cache/write_queue.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace leat {

void WriteQueue::set_least(std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  least_bytes_ = bytes;
}

bool WriteQueue::reserve(std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  const std::uint64_t most = std::max(most_bytes_, least_bytes_);
  if (queued_bytes_ != 0 && queued_bytes_ + bytes > most) return false;
  queued_bytes_ += bytes;
  return true;
}

void WriteQueue::push(CacheWrite write, std::span<const std::byte> bytes,
                      bool is_reserved) {
  const bool has_put = std::ranges::any_of(
      write.steps,
      [](const TierStep& step) { return step.what == TierStep::What::kPut; });
  if (has_put) {
    auto copy = std::make_shared<Buffer>(bytes.size());
    std::memcpy(copy->data(), bytes.data(), bytes.size());
    write.body = copy->span();
    write.bytes = std::move(copy);
  }
  if (!is_reserved && write.steps.empty()) return;
  const MutexLock lock(mutex_);
  if (is_reserved && !has_put) queued_bytes_ -= bytes.size();
  if (write.steps.empty()) return;
  if (has_put) unwritten_.insert_or_assign(write.key, write.bytes);
  queue_.push_back(std::move(write));
  queued_.notify_all();
}

void WriteQueue::push(CacheWrite write) {
  const MutexLock lock(mutex_);
  queue_.push_back(std::move(write));
  queued_.notify_all();
}

void WriteQueue::push_own(CacheWrite write) {
  const MutexLock lock(mutex_);
  queue_.push_back(std::move(write));
}

std::optional<CacheWrite> WriteQueue::take() {
  const MutexLock lock(mutex_);
  if (queue_.empty()) return std::nullopt;
  std::optional<CacheWrite> write(std::move(queue_.front()));
  queue_.pop_front();
  ++writing_;
  return write;
}

void WriteQueue::written(const CacheWrite& write) {
  const MutexLock lock(mutex_);
  --writing_;
  if (write.bytes != nullptr) {
    queued_bytes_ -= write.bytes->size();
    const auto found = unwritten_.find(write.key);
    if (found != unwritten_.end() && found->second == write.bytes) {
      unwritten_.erase(found);
    }
  }
  if (queue_.empty()) drained_.notify_all();
}

void WriteQueue::wait(const std::stop_token& stop, Nanoseconds at_most) {
  MutexLock lock(mutex_);
  queued_.wait_for(
      lock, stop, at_most,
      [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS { return !queue_.empty(); });
}

void WriteQueue::drain() {
  MutexLock lock(mutex_);
  drained_.wait(lock, [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
    return queue_.empty() && writing_ == 0;
  });
}

BufferRef WriteQueue::find(const RecordKey& key) const {
  const MutexLock lock(mutex_);
  const auto found = unwritten_.find(key);
  return found == unwritten_.end() ? nullptr : found->second;
}

}  // namespace leat
