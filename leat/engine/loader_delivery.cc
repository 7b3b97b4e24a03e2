// A loader's work as batches are asked for and given: it counts the time, looks
// further ahead or less far, and draws the trace.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>
#include <vector>

#include "leat/engine/loader_machine.h"
#include "leat/runtime/log.h"

namespace leat {
namespace {

/// A line for each epoch that is shorter would be noise.
constexpr std::chrono::seconds kLongEpoch{1};

// More than a training loop holds on purpose: the batch it works on, the one
// before, a copy under way.
constexpr std::size_t kManyBatches = 16;

// Nobody may ever take them.
constexpr std::size_t kMostWaits = 1024;

}  // namespace

Result<void> Loader::Machine::open_trace() {
  if (options.trace.empty()) return {};
  LEAT_TRY(trace, Trace::open(of_this_rank(options.trace), rank.rank));
  return {};
}

std::string Loader::Machine::of_this_rank(const std::string& file) const {
  std::filesystem::path path = file;
  if (rank.world_size > 1) {
    path.replace_extension(
        fmt::format(".rank{}{}", rank.rank, path.extension().string()));
  }
  return path.string();
}

void Loader::Machine::write_trace(const BatchWork& work, Interval wait) {
  std::vector<TracedSample> samples;
  samples.reserve(work.size());
  for (std::size_t row = 0; row < work.size(); ++row) {
    samples.push_back({work.batch.ids[row], &work.times_of(row)});
  }
  const TracedBatch batch{.epoch = work.epoch,
                          .step = work.step,
                          .samples = samples,
                          .ready = work.ready,
                          .wait = wait};
  if (trace != nullptr) trace->add(batch);
  if (recent.is_watched(wait.end)) recent.add(batch);
}

void Loader::Machine::begin_lookahead() {
  if (context == nullptr || context->pieces != nullptr) return;
  if (options.fetch_ahead) return;
  // Twice the window: it is never empty because of this.
  lookahead.emplace(global_batch / rank.world_size, 2 * share.in_flight);
}

void Loader::Machine::look_ahead() {
  if (!lookahead) return;
  const std::uint64_t samples = lookahead->samples();
  if (is_begun) stats.back().lookahead = samples;
  if (run != nullptr) run->look_ahead(samples);
  if (next_run == nullptr) return;
  // Both together, but the next batch can always become whole.
  const std::uint64_t before = run == nullptr ? 0 : run->untaken();
  next_run->look_ahead(std::max(samples - std::min(samples, before),
                                global_batch / rank.world_size));
}

void Loader::Machine::begin_wait(EpochRun* from) {
  if (from != nullptr) {
    count_scan_wait();
  } else {
    waits_for_shards = true;
  }
  if (waiting_since) return;
  waiting_since = SteadyClock().now();
  is_late = from == nullptr ||
            from->wait_within(Nanoseconds(0)) == EpochRun::State::kNotYet;
  if (!is_late || !is_begun || stats.back().samples == 0) return;
  EpochStats& at = stats.back();
  ++at.late_batches;
  const auto sent = metrics->value(Metric::kStoreInFlight);
  if (sent >= static_cast<std::int64_t>(share.in_flight)) {
    ++at.late_with_full_window;
  }
}

void Loader::Machine::count_requests() {
  const bool has_source = is_in_parts ? stream != nullptr : run != nullptr;
  if (!is_begun || !has_source) return;
  EpochStats& now = stats.back();
  const RunRequests requests =
      is_in_parts ? requests_of_parts() : run->requests();
  now.gets = requests.sent + requests.retried;
  now.retried = requests.retried;
  now.bytes_read = requests.bytes;
  now.ram_hits = requests.ram_hits;
  now.disk_hits = requests.disk_hits;
  now.peer_hits = requests.peer_hits;
  now.decoded_hits = requests.decoded_hits;
  now.misses = requests.misses;
  const bool is_ahead = next_run != nullptr && run != nullptr &&
                        next_run->epoch() != run->epoch();
  now.ahead = is_ahead ? next_run->requests().sent : 0;
}

void Loader::Machine::count_wait(TimePoint now, const StallTimes& times) {
  const Nanoseconds wait = times.total();
  stats.back().wait += wait;
  stats.back().stalls += times;
  rolling.add(now, times, 0);
  metrics->add(Metric::kPipelineStalledNanoseconds, wait.count());
}

void Loader::Machine::end_epoch() {
  EpochStats& at = stats.back();
  const TimePoint now = SteadyClock().now();
  if (delivered_at) training += *waiting_since - *delivered_at;
  delivered_at.reset();
  count_wait(now, {Stall::kHandover, now - *waiting_since});
  at.elapsed = now - begun;
  if (trace != nullptr) trace->end_epoch(*waiting_since);
  energy->keep(now);
  at.threads = thread_times() - threads_at_begin;
  judge_form(at);
  at.verdict = verdict_of(at, share);
  const bool is_told =
      options.tells_verdict && rank.rank == 0 && at.elapsed >= kLongEpoch;
  (is_told ? log_info
           : log_debug)(fmt::format("epoch {}: {}", at.epoch, at.verdict));
  tell_substituted();
  waiting_since.reset();
  has_ended = true;
  is_resuming = false;
  give_stream_memory_back();
  epoch = run->epoch() + 1;
  position = 0;
  left_behind.clear();
  resumed_order.clear();
}

void Loader::Machine::keep_wait(const StallTimes& times) {
  StepWait step;
  Nanoseconds longest{0};
  for (std::size_t i = 0; i < static_cast<std::size_t>(Stall::kCount); ++i) {
    const auto stall = static_cast<Stall>(i);
    step.wait += times[stall];
    if (times[stall] <= longest) continue;
    longest = times[stall];
    step.cause = stall;
  }
  if (waits.size() == kMostWaits) waits.pop_front();
  waits.push_back(step);
}

void Loader::Machine::deliver(const BatchWork& work) {
  const TimePoint now = SteadyClock().now();
  EpochStats& at = stats.back();
  const Interval wait{.begin = *waiting_since, .end = now};
  const StallTimes times = blame(wait, work.last_times(), work.ready);
  if (!work.error) keep_wait(times);
  if (!work.error && (trace != nullptr || recent.is_watched(now))) {
    write_trace(work, wait);
  }
  if (delivered_at) training += *waiting_since - *delivered_at;
  if (lookahead && delivered_at && !work.error) {
    lookahead->took(work.size(), work.longest_fetch(),
                    *waiting_since - *delivered_at, is_late);
  }
  delivered_at = now;
  count_wait(now, times);
  at.elapsed = now - begun;
  waiting_since.reset();
  if (work.error) return;
  if (at.samples == 0) {
    at.first_batch = at.elapsed;
    at.first_stalls = at.stalls;
  }
  at.samples += work.batch.ids.size();
  rolling.add(now, {}, work.batch.ids.size());
  if (work.substituted != 0) tell_first_bad(work);
  at.substituted += work.substituted;
  if (options.hashes) {
    at.content_hash += work.batch.content_hash;
    for (const SampleId id : work.batch.ids) at.add_to_order(id.value);
  }
  metrics->add(Metric::kPipelineBatches, 1);
  metrics->add(Metric::kPipelineSubstitutes,
               static_cast<std::int64_t>(work.substituted));
  metrics->add(Metric::kPipelineSamples,
               static_cast<std::int64_t>(work.batch.ids.size()));
  has_delivered = true;
  is_resuming = false;
  position = work.position_after;
  left_behind = work.left_behind;
  look_ahead();
}

void Loader::Machine::tell_first_bad(const BatchWork& work) const {
  if (stats.back().substituted != 0) return;
  log_warning(
      fmt::format("epoch {}: {}: a good sample of the same batch comes in its "
                  "place, as of others of this epoch; its end says how many",
                  work.epoch, work.first_bad));
}

void Loader::Machine::tell_substituted() const {
  if (stats.empty() || stats.back().substituted == 0) return;
  log_warning(fmt::format(
      "epoch {}: {} of {} samples were bad, and others came twice in their "
      "place (on_error=\"substitute\")",
      stats.back().epoch, stats.back().substituted, stats.back().samples));
}

// A user who keeps batches gets fresh memory for each: that is said once.
void Loader::Machine::watch_kept(const Batch& batch) {
  std::erase_if(handed_over, [](const auto& slot) { return slot.expired(); });
  for (const FieldArray& field : batch.fields) {
    if (field.values == nullptr) continue;
    handed_over.emplace_back(field.values);
    break;
  }
  if (handed_over.size() <= kManyBatches || has_warned) return;
  has_warned = true;
  log_warning(
      fmt::format("{} batches are being kept, each in memory of its own beside "
                  "memory=; copy what you need and let batches go",
                  handed_over.size()));
}

}  // namespace leat
