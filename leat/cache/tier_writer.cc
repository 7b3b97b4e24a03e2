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

/// False: the queue is empty.
bool TierWriter::write_next() {
  std::optional<CacheWrite> write = to_.queue.take();
  if (!write) return false;
  write_one(*write);
  return true;
}

void TierWriter::write_one(CacheWrite& write) {
  do_steps(write);
  if (write.shared) {
    to_.tiers[*write.shared].tier->set_share(write.share);
    to_.decisions.forget_allowance(*write.shared);
    follow_allowance();
  }
  if (to_.turns != nullptr) to_.turns->end(write.key);
  if (write.is_done != nullptr) *write.is_done = true;
  to_.queue.written(write);
}

void TierWriter::do_steps(const CacheWrite& write) {
  for (const TierStep& step : write.steps) {
    switch (step.what) {
      case TierStep::What::kPut:
        put(step, write);
        break;
      case TierStep::What::kDrop:
        drop(step.level, step.key);
        break;
      case TierStep::What::kDropCopy:
        to_.tiers[step.level].tier->drop(step.key);
        break;
      case TierStep::What::kMove:
        move(step, write);
        break;
    }
  }
}

void TierWriter::drop(std::size_t level, const RecordKey& key) {
  if (to_.decisions.holds(level, key)) return;  // Read again in the meantime.
  to_.tiers[level].tier->drop(key);
}

/// A record that was pushed down before it was written goes straight to the
/// lower tier.
void TierWriter::put(const TierStep& step, const CacheWrite& write) {
  const auto level = to_.decisions.level_from(step.level, write.key);
  if (level) insert(*level, write.key, write.body, write.now);
}

void TierWriter::move(const TierStep& step, const CacheWrite& write) {
  const bool is_wanted = to_.decisions.holds(step.to, step.key);
  if (is_wanted && !to_.tiers[step.to].tier->holds(step.key)) {
    Buffer body(step.length_bytes);
    if (to_.tiers[step.level].tier->read(step.key, body.span())) {
      insert(step.to, step.key, body.span(), write.now);
    } else {
      to_.decisions.lost(step.to, step.key);
    }
  }
  drop(step.level, step.key);
}

void TierWriter::insert(std::size_t level, const RecordKey& key,
                        std::span<const std::byte> bytes, AccessTime now) {
  SegmentTier& tier = *to_.tiers[level].tier;
  // By then each rank has seen nearly all that it may read.
  const AccessTime most =
      kEpochsARank * tier.options().expected_writers * to_.clock.epoch_time();
  const bool wants_strangers = tier.wants_strangers();
  const std::optional<AccessTime> since = to_.clock.since_first_epoch(now);
  const bool may_free_own = since && (!wants_strangers || *since >= most);
  (void)tier.make_room(record_cost(bytes.size()), may_free_own);
  const std::uint64_t files = tier.files_made();
  bool is_held = tier.insert(key, bytes);
  if (!is_held &&
      tier.used_bytes() + record_cost(bytes.size()) > tier.allowed_bytes()) {
    is_held = insert_later(level, key, bytes);
  }
  if (to_.turns != nullptr && tier.files_made() != files) to_.turns->announce();
  if (is_held) return;
  if (to_.metrics != nullptr) to_.metrics->add(Metric::kCacheRefusals, 1);
  to_.decisions.lost(level, key);
}

/// The planned room exists only once all later decisions are carried out, and
/// the room that others leave may have shrunk.
bool TierWriter::insert_later(std::size_t level, const RecordKey& key,
                              std::span<const std::byte> bytes) {
  follow_allowance();
  while (write_next()) {
  }
  if (!to_.decisions.holds(level, key)) return false;
  return to_.tiers[level].tier->insert(key, bytes);
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
    follow_allowance();
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
    do_steps(to_.decisions.follow_jobs());
  }
  const TimePoint end = SteadyClock().now();
  // Not for long after a moment in which we did not run.
  follow_after_ =
      end + std::min<Nanoseconds>(20 * (end - now), std::chrono::seconds(1));
}

/// Each writer under a limit holds a part of it, which changes as others come
/// and go. The policy chooses what to drop above that part; otherwise the next
/// record would be refused.
void TierWriter::follow_allowance() {
  for (std::size_t i = 0; i < to_.tiers.size(); ++i) {
    SegmentTier& tier = *to_.tiers[i].tier;
    const auto write = to_.decisions.allow(i, tier.allowed_bytes());
    if (!write || write->steps.empty()) continue;
    do_steps(*write);
    tier.refresh();  // Writers that wait for the room may take it now.
  }
}

}  // namespace leat
