#include "leat/engine/loader/account.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "leat/engine/verdict.h"
#include "leat/runtime/log.h"

namespace leat {
namespace {

/// An epoch shorter than this gets no line in the log: such
/// lines would be noise.
constexpr std::chrono::seconds kLongEpoch{1};

// The number of waits is bounded, because nobody may ever take them.
constexpr std::size_t kMostWaits = 1024;

/// Whether a batch that came late for this reason would have come as late if it
/// had been asked for earlier.
bool is_bound(Stall cause, bool is_window_full) {
  switch (cause) {
    case Stall::kDecode:
    case Stall::kTransform:  // The threads were busy with batches before it.
    case Stall::kMemory:
      return true;
    case Stall::kStorage:
      return is_window_full;
    default:
      return false;
  }
}

}  // namespace

Account::Account(AccountOptions options, Metrics& metrics)
    : options_(options), metrics_(metrics) {}

Result<void> Account::open_trace(const std::string& file, std::uint32_t rank) {
  return trace_.open(file, rank);
}

void Account::close_trace() {
  const MutexLock lock(mutex_);
  trace_.close();
}

void Account::begin_epoch(std::uint64_t epoch, TimePoint asked,
                          ThreadTimes threads) {
  const MutexLock lock(mutex_);
  waiting_since_.reset();
  begun_ = asked;
  threads_at_begin_ = threads;
  is_begun_ = true;
  epochs_.begin(epoch);
  const TimePoint now = SteadyClock().now();
  count_wait(now, {Stall::kHandover, now - asked});
}

void Account::leave_epoch() {
  const MutexLock lock(mutex_);
  is_begun_ = false;
  waiting_since_.reset();
  delivered_at_.reset();
}

void Account::tell_left_early() const {
  const MutexLock lock(mutex_);
  if (!epochs_.empty()) tell_substituted();
}

EpochStats Account::end_epoch(const RankLimits& limits, ThreadTimes threads) {
  const MutexLock lock(mutex_);
  EpochStats& at = epochs_.last();
  const TimePoint now = SteadyClock().now();
  end_training();
  delivered_at_.reset();
  count_wait(now, {Stall::kHandover, now - *waiting_since_});
  at.elapsed = now - begun_;
  trace_.end_epoch(*waiting_since_);
  at.threads = threads - threads_at_begin_;
  at.verdict = verdict_of(at, limits);
  const bool is_told = options_.tells_verdict && options_.is_first_rank &&
                       at.elapsed >= kLongEpoch;
  (is_told ? log_info
           : log_debug)(fmt::format("epoch {}: {}", at.epoch, at.verdict));
  tell_substituted();
  waiting_since_.reset();
  return at;
}

void Account::begin_wait(std::uint64_t window,
                         const std::function<bool()>& is_late) {
  const MutexLock lock(mutex_);
  if (waiting_since_) return;
  waiting_since_ = SteadyClock().now();
  is_late_ = is_late();
  const auto sent = metrics_.value(Metric::kStoreInFlight);
  is_window_full_ = sent >= static_cast<std::int64_t>(window);
  if (!is_late_ || !is_begun_ || epochs_.last().samples == 0) return;
  EpochStats& at = epochs_.last();
  ++at.late_batches;
  if (is_window_full_) ++at.late_with_full_window;
}

void Account::begin_scan_wait() {
  const MutexLock lock(mutex_);
  waits_for_shards_ = true;
}

void Account::end_scan_wait() {
  const MutexLock lock(mutex_);
  if (!waits_for_shards_) return;
  waits_for_shards_ = false;
  const TimePoint now = SteadyClock().now();
  if (is_begun_ && waiting_since_) {
    count_wait(now, {Stall::kStorage, now - *waiting_since_});
  }
  waiting_since_ = now;
}

void Account::set_requests(const RunRequests& requests, std::uint64_t ahead) {
  const MutexLock lock(mutex_);
  if (!is_begun_) return;
  EpochStats& now = epochs_.last();
  now.gets = requests.sent + requests.retried;
  now.retried = requests.retried;
  now.bytes_read = requests.bytes;
  now.ram_hits = requests.ram_hits;
  now.disk_hits = requests.disk_hits;
  now.peer_hits = requests.peer_hits;
  now.decoded_hits = requests.decoded_hits;
  now.misses = requests.misses;
  now.ahead = ahead;
}

void Account::set_lookahead(std::uint64_t samples) {
  const MutexLock lock(mutex_);
  if (is_begun_) epochs_.last().lookahead = samples;
}

/// Counts the wait in the running epoch, the last minute and the metrics.
void Account::count_wait(TimePoint now, const StallTimes& times) {
  const Nanoseconds wait = times.total();
  epochs_.last().wait += wait;
  epochs_.last().stalls += times;
  rolling_.add(now, times, 0);
  metrics_.add(Metric::kPipelineStalledNanoseconds, wait.count());
}

StepWait Account::keep_wait(const StallTimes& times) {
  StepWait step;
  Nanoseconds longest{0};
  for (std::size_t i = 0; i < static_cast<std::size_t>(Stall::kCount); ++i) {
    const auto stall = static_cast<Stall>(i);
    step.wait += times[stall];
    if (times[stall] <= longest) continue;
    longest = times[stall];
    step.cause = stall;
  }
  if (waits_.size() == kMostWaits) waits_.pop_front();
  waits_.push_back(step);
  return step;
}

/// Training lasted from the last batch until the next was asked for.
void Account::end_training() {
  if (delivered_at_) training_ += *waiting_since_ - *delivered_at_;
}

std::optional<Account::Step> Account::deliver(const BatchWork& work) {
  const MutexLock lock(mutex_);
  const TimePoint now = SteadyClock().now();
  EpochStats& at = epochs_.last();
  const Interval wait{.begin = *waiting_since_, .end = now};
  const StallTimes times = blame(wait, work.last_times(), work.ready);
  StepWait waited;
  if (!work.error) {
    waited = keep_wait(times);
    trace_.add(work, wait);
  }
  end_training();
  std::optional<Step> step;
  if (delivered_at_) {
    step =
        Step{.busy = *waiting_since_ - *delivered_at_,
             .wait = wait.end - wait.begin,
             .is_late = is_late_,
             .is_bound = is_late_ && is_bound(waited.cause, is_window_full_)};
  }
  delivered_at_ = now;
  count_wait(now, times);
  at.elapsed = now - begun_;
  waiting_since_.reset();
  if (work.error) return step;
  if (at.samples == 0) {
    at.first_batch = at.elapsed;
    at.first_stalls = at.stalls;
  }
  rolling_.add(now, {}, work.batch.ids.size());
  count_samples(work);
  return step;
}

void Account::count_samples(const BatchWork& work) {
  EpochStats& at = epochs_.last();
  const auto samples = static_cast<std::int64_t>(work.batch.ids.size());
  at.samples += work.batch.ids.size();
  at.substituted += work.substituted;
  at.skipped += work.skipped;
  if (options_.has_hashes) {
    at.content_hash += work.batch.content_hash;
    for (const SampleId id : work.batch.ids) at.add_to_order(id.value);
  }
  metrics_.add(Metric::kPipelineBatches, 1);
  metrics_.add(Metric::kPipelineSubstitutes,
               static_cast<std::int64_t>(work.substituted));
  metrics_.add(Metric::kPipelineSkipped,
               static_cast<std::int64_t>(work.skipped));
  metrics_.add(Metric::kPipelineSamples, samples);
}

void Account::tell_substituted() const {
  const EpochStats& at = epochs_.last();
  if (at.substituted != 0) {
    log_warning(fmt::format(
        "epoch {}: {} of {} samples were bad, and others of the epoch came in "
        "their place (on_error=\"substitute\")",
        at.epoch, at.substituted, at.samples));
  }
  if (at.skipped != 0) {
    log_info(fmt::format(
        "epoch {}: functions skipped {} of {} samples, and others of the epoch "
        "came in their place",
        at.epoch, at.skipped, at.samples));
  }
}

std::vector<EpochStats> Account::stats() const {
  const MutexLock lock(mutex_);
  return epochs_.all();
}

RecentStalls Account::recent() const {
  const MutexLock lock(mutex_);
  return rolling_.recent(SteadyClock().now());
}

std::vector<StepWait> Account::take_waits() {
  const MutexLock lock(mutex_);
  std::vector<StepWait> waits(waits_.begin(), waits_.end());
  waits_.clear();
  return waits;
}

void Account::add_to(LoaderTotals& totals) {
  const MutexLock lock(mutex_);
  totals.reads = reads_over_ = std::max(reads_over_, totals.reads);
  totals.training = training_;
  if (waiting_since_) totals.waiting = SteadyClock().now() - *waiting_since_;
  epochs_.add_to(totals);
}

}  // namespace leat
