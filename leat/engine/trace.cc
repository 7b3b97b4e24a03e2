#include "leat/engine/trace.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <utility>

#include "leat/base/system_error.h"
#include "leat/runtime/log.h"

namespace leat {
namespace {

// Not the ids of real threads, which a merged trace of torch's has too.
constexpr std::uint32_t kTraining = 1'900'000'000;
constexpr std::uint32_t kBatches = 1'900'000'001;
constexpr std::uint32_t kFetches = 1'900'010'000;
constexpr std::uint32_t kDecodes = 1'900'020'000;

constexpr std::string_view kEnd = "\n]}\n";

constexpr std::size_t kFlushBytes = 1 << 20;

/// What a slice lasts at least, to be seen at all.
constexpr Nanoseconds kLeast{1};

std::int64_t wall_clock_nanoseconds() {
  return std::chrono::duration_cast<Nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Interval at_least(Interval time) {
  time.end = std::max(time.end, time.begin + kLeast);
  return time;
}

}  // namespace

Result<std::unique_ptr<Trace>> Trace::open(const std::string& path,
                                           std::uint32_t rank) {
  std::FILE* const file = std::fopen(path.c_str(), "we");
  if (file == nullptr) return system_error(errno, "the trace " + path);
  return std::unique_ptr<Trace>(new Trace(file, path, rank));
}

Trace::Trace(std::FILE* file, std::string path, std::uint32_t rank)
    : file_(file),
      path_(std::move(path)),
      pid_(getpid()),
      base_(SteadyClock().now()),
      fetches_{.name = "fetch", .first_tid = kFetches},
      decodes_{.name = "decode", .first_tid = kDecodes},
      batches_{.name = "batches", .first_tid = kBatches} {
  text_ = fmt::format(R"({{"schemaVersion":1,"displayTimeUnit":"ms",)"
                      R"("baseTimeNanoseconds":{},"traceEvents":[)",
                      wall_clock_nanoseconds());
  begin_event();
  fmt::format_to(std::back_inserter(text_),
                 R"({{"ph":"M","pid":{},"name":"process_name",)"
                 R"("args":{{"name":"leat rank {}"}}}})",
                 pid_, rank);
  name_thread(kTraining, "training");
  flush();
}

Trace::~Trace() {
  if (getpid() != pid_) return;  // A forked child must not write to it.
  flush();
  std::fclose(file_);
}

double Trace::microseconds(TimePoint at) const {
  return std::chrono::duration<double, std::micro>(at - base_).count();
}

void Trace::begin_event() {
  text_ += has_events_ ? ",\n" : "\n";
  has_events_ = true;
}

void Trace::name_thread(std::uint32_t tid, const std::string& name) {
  for (const auto& [key, value] :
       {std::pair<const char*, std::string>{"thread_name",
                                            "{\"name\":\"" + name + "\"}"},
        {"thread_sort_index",
         "{\"sort_index\":" + std::to_string(tid) + "}"}}) {
    begin_event();
    fmt::format_to(std::back_inserter(text_),
                   R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{}}})",
                   pid_, tid, key, value);
  }
}

std::uint32_t Trace::lane(Lanes& lanes, Interval time) {
  const auto free = std::ranges::find_if(
      lanes.busy_until,
      [&time](const TimePoint until) { return until <= time.begin; });
  const auto index =
      static_cast<std::uint32_t>(free - lanes.busy_until.begin());
  const std::uint32_t tid = lanes.first_tid + index;
  if (free == lanes.busy_until.end()) {
    lanes.busy_until.push_back(time.end);
    name_thread(tid, fmt::format("{} {}", lanes.name, index));
  } else {
    *free = time.end;
  }
  return tid;
}

void Trace::slice(std::uint32_t tid, std::string_view name, Interval time,
                  std::string_view args) {
  begin_event();
  fmt::format_to(std::back_inserter(text_),
                 R"({{"ph":"X","pid":{},"tid":{},"name":"{}","ts":{:.3f},)"
                 R"("dur":{:.3f},"args":{{{}}}}})",
                 pid_, tid, name, microseconds(time.begin),
                 microseconds(time.end) - microseconds(time.begin), args);
}

void Trace::arrow(char phase, std::uint64_t id, std::uint32_t tid,
                  TimePoint at) {
  begin_event();
  fmt::format_to(std::back_inserter(text_),
                 R"({{"ph":"{}","pid":{},"tid":{},"name":"sample",)"
                 R"("cat":"leat","id":{},"ts":{:.3f}{}}})",
                 phase, pid_, tid, id, microseconds(at),
                 phase == 'f' ? R"(,"bp":"e")" : "");
}

void Trace::add_sample(const TracedBatch& batch, const TracedSample& sample,
                       TimePoint batch_at, std::uint32_t batch_tid) {
  const SampleTimes& times = *sample.times;
  const std::string args =
      fmt::format(R"("sample":{},"epoch":{},"step":{})", sample.id.value,
                  batch.epoch, batch.step);
  const Interval fetch = at_least({times.reserved, times.fetched});
  const std::uint32_t fetch_tid = lane(fetches_, fetch);
  slice(fetch_tid, "fetch", fetch, args);
  for (const Delay& delay : times.delays) {
    slice(fetch_tid, to_string(delay.cause), at_least(delay.time));
  }
  const Interval work = at_least({times.fetched, times.finished});
  const std::uint32_t work_tid = lane(decodes_, work);
  const TimePoint decoded = std::clamp(times.decoded, work.begin, work.end);
  slice(work_tid, "decode", at_least({work.begin, decoded}), args);
  if (decoded < work.end) slice(work_tid, "transform", {decoded, work.end});
  const std::uint64_t id = next_arrow_++;
  arrow('s', id, fetch_tid, fetch.begin);
  arrow('t', id, work_tid, work.begin);
  arrow('f', id, batch_tid, batch_at);
}

void Trace::add(const TracedBatch& batch) {
  if (is_full_ || batch.samples.empty()) return;
  TimePoint last = batch.samples.front().times->finished;
  for (const TracedSample& sample : batch.samples) {
    last = std::max(last, sample.times->finished);
  }
  const std::string args =
      fmt::format(R"("epoch":{},"step":{})", batch.epoch, batch.step);
  const Interval put_together = at_least({last, batch.ready});
  const std::uint32_t tid = lane(batches_, put_together);
  slice(tid, "batch", put_together, args);
  for (const TracedSample& sample : batch.samples) {
    add_sample(batch, sample, put_together.begin, tid);
  }
  if (given_ != TimePoint()) {
    slice(kTraining, "step", at_least({given_, batch.wait.begin}));
  }
  const Interval wait = at_least(batch.wait);
  slice(kTraining, "wait", wait, args);
  const std::uint64_t id = next_arrow_++;
  arrow('s', id, tid, put_together.begin);
  arrow('f', id, kTraining, wait.begin);
  given_ = wait.end;
  if (text_.size() >= kFlushBytes) flush();
}

void Trace::end_epoch(TimePoint asked) {
  if (is_full_ || given_ == TimePoint()) return;
  slice(kTraining, "step", at_least({given_, asked}));
  given_ = {};  // What comes before the next epoch is no step.
  flush();
}

void Trace::flush() {
  // The end is written over by what comes next.
  const std::uint64_t at = written_bytes_;
  written_bytes_ += text_.size();
  text_ += kEnd;
  if (std::fseek(file_, static_cast<long>(at), SEEK_SET) != 0 ||
      std::fwrite(text_.data(), 1, text_.size(), file_) != text_.size() ||
      std::fflush(file_) != 0) {
    is_full_ = true;
    log_warning(
        system_error(errno, "the trace " + path_ + " ends here").message());
  } else if (written_bytes_ >= kMostBytes) {
    is_full_ = true;
    log_warning(fmt::format("the trace {} ends here, at {} MiB", path_,
                            written_bytes_ >> 20));
  }
  text_.clear();
}

}  // namespace leat
