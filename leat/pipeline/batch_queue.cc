#include "leat/pipeline/batch_queue.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace leat {

BatchQueue::BatchQueue(const Steps& steps, const PlanLimits& limits,
                       bool makes_little)
    : steps_(steps), makes_little_(makes_little), limits_(limits) {}

BatchQueue::State BatchQueue::wait_within(Nanoseconds timeout, Asker asker) {
  MutexLock lock(mutex_);
  if (asker == Asker::kTraining) draw_batch();
  const auto is_decided = [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
    if (batches_.empty()) return has_ended_;
    return batches_.front()->is_ready.load(std::memory_order_acquire);
  };
  if (asker == Asker::kTraining && !is_decided() && !batches_.empty()) {
    batches_.front()->is_awaited = true;
  }
  if (!changed_.wait_for(lock, timeout, is_decided)) return State::kNotYet;
  return batches_.empty() ? State::kEnd : State::kReady;
}

BatchWork& BatchQueue::head() {
  const MutexLock lock(mutex_);
  return *batches_.front();
}

BatchQueue::Taken BatchQueue::take() {
  const MutexLock lock(mutex_);
  Taken taken{.batch = std::move(batches_.front()), .next = nullptr};
  batches_.pop_front();
  if (!batches_.empty()) taken.next = batches_.front();
  taken_ += taken.batch->size();
  ++taken_batches_;
  changed_.notify_all();
  return taken;
}

void BatchQueue::adopt() {
  const MutexLock lock(mutex_);
  limits_.samples = PlanLimits::kNone;
  changed_.notify_all();
}

void BatchQueue::look_ahead(std::uint64_t samples) {
  const MutexLock lock(mutex_);
  limits_.lookahead = samples;
  changed_.notify_all();
}

std::uint64_t BatchQueue::untaken() const {
  const MutexLock lock(mutex_);
  return begun_ - taken_;
}

bool BatchQueue::wait_for_leave(std::uint64_t planned, std::uint64_t reads,
                                const std::stop_token& stop) {
  const std::uint64_t in_all = std::max(planned, reads);
  MutexLock lock(mutex_);
  return changed_.wait(lock, stop, [&]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
    // Rows and balances give a rank more samples in one step than in another,
    // and the first batch may have more of them than the lookahead.
    const std::uint64_t first = batches_.empty() ? 0 : batches_.front()->size();
    return in_all < limits_.samples &&
           planned - taken_ < std::max(limits_.lookahead, first) &&
           (!limits_.fetch_ahead || planned < limits_.fetch_ahead->asked()) &&
           to_make_ < most_to_make();
  });
}

/// Draws the samples of the next batch, unless that was done: its requests may
/// then be planned. A step without samples of this rank is the last one.
void BatchQueue::draw_batch() {
  if (!limits_.fetch_ahead || taken_batches_ == steps_.count()) return;
  FetchAhead& rule = *limits_.fetch_ahead;
  const std::uint64_t end = taken_ + steps_.size(taken_batches_);
  if (rule.drawn() >= end) return;
  while (rule.drawn() < end) (void)rule.draw();
  changed_.notify_all();
}

/// A sample whose record is to be made is read, whoever makes it first.
std::uint64_t BatchQueue::most_to_make() const {
  constexpr std::uint64_t kLeast = 64;
  if (!makes_little_) return std::numeric_limits<std::uint64_t>::max();
  return std::max<std::uint64_t>(kLeast, largest_batch_);
}

void BatchQueue::begin(const std::shared_ptr<BatchWork>& batch) {
  const MutexLock lock(mutex_);
  batches_.push_back(batch);
  under_way_ += batch->size();
  begun_ += batch->size();
  largest_batch_ = std::max<std::uint64_t>(largest_batch_, batch->size());
}

void BatchQueue::end() {
  const MutexLock lock(mutex_);
  has_ended_ = true;
  changed_.notify_all();
}

void BatchQueue::hold(SampleWork& sample) {
  const MutexLock lock(mutex_);
  held_ = &sample;
  has_held_arrived_ = false;
}

void BatchQueue::wait_for_held() {
  MutexLock lock(mutex_);
  changed_.wait(lock, [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
    return has_held_arrived_;
  });
  held_ = nullptr;
}

void BatchQueue::add_to_make(SampleWork& sample) {
  if (sample.is_to_make) return;
  const MutexLock lock(mutex_);
  sample.is_to_make = true;
  ++to_make_;
}

bool BatchQueue::arrived(const SampleWork& sample) {
  const MutexLock lock(mutex_);
  if (held_ != &sample) return false;
  has_held_arrived_ = true;
  changed_.notify_all();
  return true;
}

void BatchQueue::finish(bool was_to_make, bool is_last) {
  const MutexLock lock(mutex_);
  --under_way_;
  if (was_to_make && to_make_-- == most_to_make()) changed_.notify_all();
  if (is_last || under_way_ == 0) changed_.notify_all();
}

// Checks for a stop under the lock, so that whoever stops the run finds
// everything that was put off before.
bool BatchQueue::puts_off(BatchWork& batch, SampleWork& sample,
                          const std::stop_token& stop) {
  const MutexLock lock(mutex_);
  if (stop.stop_requested() || batches_.front().get() == &batch) return false;
  batch.put_off.push_back(&sample);
  return true;
}

std::vector<SampleWork*> BatchQueue::take_put_off(BatchWork& batch) {
  const MutexLock lock(mutex_);
  return std::exchange(batch.put_off, {});
}

std::vector<std::shared_ptr<BatchWork>> BatchQueue::batches() const {
  const MutexLock lock(mutex_);
  return {batches_.begin(), batches_.end()};
}

void BatchQueue::wait_until_finished() {
  MutexLock lock(mutex_);
  changed_.wait(lock, [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
    return under_way_ == 0;
  });
}

}  // namespace leat
