#include "leat/pipeline/slot_pool.h"

#include <utility>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/mutex.h"

namespace leat {
// Outlives the pool as long as a slot does.
struct SlotPool::Shared {
  Mutex mutex;
  std::vector<Buffer> free LEAT_GUARDED_BY(mutex);
  std::uint64_t free_bytes LEAT_GUARDED_BY(mutex) = 0;
  bool is_closed LEAT_GUARDED_BY(mutex) = false;
  std::uint64_t keep_bytes = 0;
  std::shared_ptr<Metrics> metrics;

  Buffer take(std::size_t size_bytes);
  void give_back(Buffer buffer);
};

class SlotPool::PooledSlot final : public Slot {
 public:
  PooledSlot(std::shared_ptr<Shared> shared, std::size_t size_bytes)
      : shared_(std::move(shared)),
        size_bytes_(size_bytes),
        buffer_(shared_->take(size_bytes)) {}
  ~PooledSlot() override { shared_->give_back(std::move(buffer_)); }
  PooledSlot(const PooledSlot&) = delete;
  PooledSlot& operator=(const PooledSlot&) = delete;

  std::span<std::byte> bytes() override {
    return buffer_.span().first(size_bytes_);
  }

 private:
  const std::shared_ptr<Shared> shared_;
  const std::size_t size_bytes_;
  Buffer buffer_;
};

Buffer SlotPool::Shared::take(std::size_t size_bytes) {
  {
    const MutexLock lock(mutex);
    std::size_t best = free.size();
    for (std::size_t i = 0; i < free.size(); ++i) {
      const bool fits =
          free[i].size() >= size_bytes && free[i].size() / 2 <= size_bytes;
      if (fits && (best == free.size() || free[i].size() < free[best].size())) {
        best = i;
      }
    }
    if (best != free.size()) {
      Buffer buffer = std::move(free[best]);
      free[best] = std::move(free.back());
      free.pop_back();
      free_bytes -= buffer.size();
      return buffer;
    }
  }
  Buffer fresh(size_bytes);  // Counted if the system has given it.
  metrics->add(Metric::kPipelineFreshSlots, 1);
  metrics->add(Metric::kPipelineSlotBytes,
               static_cast<std::int64_t>(size_bytes));
  return fresh;
}

void SlotPool::Shared::give_back(Buffer buffer) {
  const MutexLock lock(mutex);
  if (is_closed || free_bytes + buffer.size() > keep_bytes) {
    metrics->add(Metric::kPipelineSlotBytes,
                 -static_cast<std::int64_t>(buffer.size()));
    return;
  }
  free_bytes += buffer.size();
  free.push_back(std::move(buffer));
}

SlotPool::SlotPool(std::uint64_t keep_bytes, std::shared_ptr<Metrics> metrics)
    : shared_(std::make_shared<Shared>()) {
  shared_->keep_bytes = keep_bytes;
  shared_->metrics = std::move(metrics);
}

SlotPool::~SlotPool() {
  const MutexLock lock(shared_->mutex);
  shared_->is_closed = true;
  shared_->metrics->add(Metric::kPipelineSlotBytes,
                        -static_cast<std::int64_t>(shared_->free_bytes));
  shared_->free.clear();
  shared_->free_bytes = 0;
}

SlotRef SlotPool::take(std::size_t size_bytes) {
  return std::make_shared<PooledSlot>(shared_, size_bytes);
}

}  // namespace leat
