#include "leat/cache/tier_writer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/cache/segment_format.h"
#include "leat/runtime/start_thread.h"
#include "leat/runtime/thread_name.h"

namespace leat {
namespace {

/// After this many epochs for each rank of the node, no rank will read a record
/// that an earlier run left.
constexpr AccessTime kEpochsARank = 4;

}  // namespace

TierWriter::TierWriter(const Parts& parts, TierWriterOptions options)
    : to_(parts),
      options_(options),
      thread_(start_thread([this](const std::stop_token& stop) {
        name_this_thread("leat-cache-write");
        run(stop);
      })) {}

void TierWriter::write_now(CacheWrite write) {
  bool is_done = false;  // Guarded by turn_.
  write.is_done = &is_done;
  to_.queue.push_own(std::move(write));
  while (true) {
    const MutexLock lock(turn_);
    if (is_done) return;
    (void)write_next();
  }
}

void TierWriter::run(const std::stop_token& stop) {
  TimePoint refreshed = SteadyClock().now();
  TimePoint caught_up = refreshed;
  while (true) {
    to_.queue.wait(stop, options_.catch_up_every);
    bool has_written = false;
    {
      const MutexLock lock(turn_);
      has_written = write_next();
    }
    if (stop.stop_requested()) {
      if (!has_written) return;
      continue;
    }
    if (SteadyClock().now() - refreshed >= options_.refresh_every) {
      see_files(to_.tiers, /*has_new_files=*/true);
      see_others();
      refreshed = caught_up = SteadyClock().now();
    } else if (SteadyClock().now() - caught_up >= options_.catch_up_every) {
      see_others();
      caught_up = SteadyClock().now();
    }
  }
}

// --- carrying out ------------------------------------------------------------

/// False: the queue is empty.
bool TierWriter::write_next() {
  if (!take_next()) return false;
  carry_out();
  return true;
}

bool TierWriter::take_next() {
  std::optional<CacheWrite> write = to_.queue.take();
  if (!write) return false;
  tasks_.push_back({.write = *std::move(write), .is_queued = true});
  return true;
}

/// The planned room exists only once all later decisions are carried out. So a
/// write that finds none waits until the queue is empty, and those that came
/// after it go first. However many wait, the stack does not grow.
void TierWriter::carry_out() {
  while (!tasks_.empty()) {
    if (tasks_.back().is_waiting && take_next()) continue;
    Task task = std::move(tasks_.back());
    tasks_.pop_back();
    go_on(std::move(task));
  }
}

void TierWriter::go_on(Task task) {
  if (!do_steps(task)) {
    task.is_waiting = true;
    tasks_.push_back(std::move(task));
    return follow_allowance(0);  // The room that others leave may have shrunk.
  }
  if (const auto level = std::exchange(task.write.shared, std::nullopt)) {
    to_.tiers[*level].tier->set_share(task.write.share);
    to_.decisions.forget_allowance(*level);
    tasks_.push_back(std::move(task));  // It ends once that is followed.
    return follow_allowance(0);
  }
  end(task);
}

void TierWriter::end(Task& task) {
  if (task.allowed) {
    // Writers that wait for the room may take it now.
    to_.tiers[*task.allowed].tier->refresh();
    follow_allowance(*task.allowed + 1);
  }
  if (!task.is_queued) return;
  if (to_.turns != nullptr) to_.turns->end(task.write.key);
  if (task.write.is_done != nullptr) *task.write.is_done = true;
  to_.queue.written(task.write);
}

/// False: the next one waits for room.
bool TierWriter::do_steps(Task& task) {
  const std::vector<TierStep>& steps = task.write.steps;
  for (; task.next_step < steps.size(); ++task.next_step) {
    const bool may_wait = !std::exchange(task.is_waiting, false);
    if (!do_step(steps[task.next_step], task.write, may_wait)) return false;
  }
  return true;
}

/// False: it finds no room yet. It has then done nothing, and is tried again.
bool TierWriter::do_step(const TierStep& step, const CacheWrite& write,
                         bool may_wait) {
  switch (step.what) {
    case TierStep::What::kPut:
      return put(step, write, may_wait);
    case TierStep::What::kDrop:
      drop(step.level, step.key);
      return true;
    case TierStep::What::kDropCopy:
      to_.tiers[step.level].tier->drop(step.key);
      return true;
    case TierStep::What::kMove:
      return move(step, write, may_wait);
  }
  return true;
}

void TierWriter::drop(std::size_t level, const RecordKey& key) {
  if (to_.decisions.holds(level, key)) return;  // Read again in the meantime.
  to_.tiers[level].tier->drop(key);
}

/// A record that was pushed down before it was written goes straight to the
/// lower tier.
bool TierWriter::put(const TierStep& step, const CacheWrite& write,
                     bool may_wait) {
  const auto level = to_.decisions.level_from(step.level, write.key);
  return !level || insert(*level, write.key, write.body, write.now, may_wait);
}

bool TierWriter::move(const TierStep& step, const CacheWrite& write,
                      bool may_wait) {
  const bool is_wanted = to_.decisions.holds(step.to, step.key);
  if (is_wanted && !to_.tiers[step.to].tier->holds(step.key)) {
    Buffer body(step.length_bytes);
    if (!to_.tiers[step.level].tier->read(step.key, body.span())) {
      to_.decisions.lost(step.to, step.key);
    } else if (!insert(step.to, step.key, body.span(), write.now, may_wait)) {
      return false;
    }
  }
  drop(step.level, step.key);
  return true;
}

/// False: there is no room, and it may wait for some. Otherwise it is written,
/// or refused.
bool TierWriter::insert(std::size_t level, const RecordKey& key,
                        std::span<const std::byte> bytes, AccessTime now,
                        bool may_wait) {
  SegmentTier& tier = *to_.tiers[level].tier;
  const std::uint64_t cost = record_cost(bytes.size());
  // By then each rank has seen nearly all that it may read.
  const AccessTime most =
      kEpochsARank * tier.options().expected_writers * to_.clock.epoch_time();
  const bool wants_strangers = tier.wants_strangers();
  const std::optional<AccessTime> since = to_.clock.since_first_epoch(now);
  const bool may_free_own = since && (!wants_strangers || *since >= most);
  (void)tier.make_room(cost, may_free_own);
  const std::uint64_t files = tier.files_made();
  const bool is_held = tier.insert(key, bytes);
  if (to_.turns != nullptr && tier.files_made() != files) to_.turns->announce();
  if (is_held) return true;
  if (may_wait && tier.used_bytes() + cost > tier.allowed_bytes()) return false;
  if (to_.metrics != nullptr) to_.metrics->add(Metric::kCacheRefusals, 1);
  to_.decisions.lost(level, key);
  return true;
}

// --- what other writers do ---------------------------------------------------

void TierWriter::see_others() {
  if (to_.turns != nullptr) {
    to_.turns->see_others();
  } else {
    see_files(to_.tiers, /*has_new_files=*/false);
  }
  {
    const MutexLock lock(turn_);
    follow_allowance(0);
    carry_out();
  }
  if (to_.board != nullptr) follow_jobs();
}

// Goes through everything that is held, so it may take at most a
// twentieth of the time.
void TierWriter::follow_jobs() {
  const TimePoint now = SteadyClock().now();
  if (now < follow_after_) return;
  {
    const MutexLock lock(turn_);
    to_.board->look();
    tasks_.push_back({.write = to_.decisions.follow_jobs()});
    carry_out();
  }
  const TimePoint end = SteadyClock().now();
  // Not for long after a moment in which we did not run.
  follow_after_ =
      end + std::min<Nanoseconds>(20 * (end - now), std::chrono::seconds(1));
}

/// Each writer under a limit holds a part of it, which changes as others come
/// and go. The policy chooses what to drop above that part; otherwise the next
/// record would be refused. Begins with the first tier whose part has shrunk;
/// the tiers below follow when that is done.
void TierWriter::follow_allowance(std::size_t first_level) {
  for (std::size_t i = first_level; i < to_.tiers.size(); ++i) {
    auto write = to_.decisions.allow(i, to_.tiers[i].tier->allowed_bytes());
    if (!write || write->steps.empty()) continue;
    tasks_.push_back({.write = *std::move(write), .allowed = i});
    return;
  }
}

}  // namespace leat
