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

// Differ from the ids of real threads, which a merged trace of torch has too:
// Linux has none above 4,194,304. Far apart, since as many samples may be under
// way as memory holds; short, since each sample's text has five of them.
constexpr std::uint32_t kTraining = 5'000'000;
constexpr std::uint32_t kBatches = 5'000'001;
constexpr std::uint32_t kFetches = 6'000'000;
constexpr std::uint32_t kDecodes = 8'000'000;

constexpr std::string_view kEnd = "\n]}\n";

/// The bytes written between two flushes: few enough to stay in a CPU
/// cache.
constexpr std::size_t kFlushBytes = 256 << 10;
/// The most bytes of an event besides its beginning, its name and its
/// arguments.
constexpr std::size_t kMostOfEvent = 64 + 3 * TraceText::kMostDigits;

/// The least length of a slice, so that it is visible.
constexpr Nanoseconds kLeast{1};
/// A shorter fetch found its bytes already there: they came with another's.
constexpr Nanoseconds kLeastFetch{1000};
/// A shorter transform is reported with the decoding instead of drawn.
constexpr Nanoseconds kLeastTransform{10'000};

/// The names of slices, with the text around them in an event.
constexpr std::string_view kFetch = R"(,"name":"fetch","ts":)";
constexpr std::string_view kCache = R"(,"name":"cache","ts":)";
constexpr std::string_view kDecode = R"(,"name":"decode","ts":)";
constexpr std::string_view kTransform = R"(,"name":"transform","ts":)";
constexpr std::string_view kBatch = R"(,"name":"batch","ts":)";
constexpr std::string_view kStep = R"(,"name":"step","ts":)";
constexpr std::string_view kWait = R"(,"name":"wait","ts":)";

std::string named(std::string_view name) {
  return fmt::format(R"(,"name":"{}","ts":)", name);
}

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
      slice_begin_(fmt::format(",\n{{\"ph\":\"X\",\"pid\":{},\"tid\":", pid_)),
      arrow_begin_(arrow_of("s")),
      arrow_on_(arrow_of("t")),
      // The arrow points to the slice around it.
      arrow_end_(arrow_of(R"(f","bp":"e)")),
      fetches_{.name = "fetch", .first_tid = kFetches},
      decodes_{.name = "decode", .first_tid = kDecodes},
      batches_{.name = "batches", .first_tid = kBatches} {
  // Each event but the first begins with the comma after the one before.
  const std::string begin =
      fmt::format(R"({{"schemaVersion":1,"displayTimeUnit":"ms",)"
                  R"("baseTimeNanoseconds":{},"traceEvents":[)"
                  "\n"
                  R"({{"ph":"M","pid":{},"name":"process_name",)"
                  R"("args":{{"name":"leat rank {}"}}}})",
                  wall_clock_nanoseconds(), pid_, rank);
  text_.make_room(begin.size());
  text_.put(begin);
  name_thread(kTraining, "training");
  flush();
}

std::string Trace::arrow_of(std::string_view kind) const {
  return fmt::format(
      ",\n"
      R"({{"ph":"{}","cat":"leat","name":"sample","pid":{},"tid":)",
      kind, pid_);
}

Trace::~Trace() {
  if (getpid() != pid_) return;  // A forked child must not write to it.
  flush();
  std::fclose(file_);
}

void Trace::name_thread(std::uint32_t tid, const std::string& name) {
  const std::string named = fmt::format(
      ",\n"
      R"({{"ph":"M","pid":{0},"tid":{1},"name":"thread_name",)"
      R"("args":{{"name":"{2}"}}}},)"
      "\n"
      R"({{"ph":"M","pid":{0},"tid":{1},"name":"thread_sort_index",)"
      R"("args":{{"sort_index":{1}}}}})",
      pid_, tid, name);
  text_.make_room(named.size());
  text_.put(named);
}

std::uint32_t Trace::lane(Lanes& lanes, Interval time) {
  const auto row = static_cast<std::uint32_t>(lanes.rows.take(time));
  const std::uint32_t tid = lanes.first_tid + row;
  if (row == lanes.named) {
    ++lanes.named;
    name_thread(tid, fmt::format("{} {}", lanes.name, row));
  }
  return tid;
}

void Trace::slice(std::uint32_t tid, std::string_view name, Interval time,
                  std::string_view end) {
  text_.make_room(slice_begin_.size() + name.size() + end.size() +
                  kMostOfEvent);
  text_.put(slice_begin_);
  text_.put(tid);
  text_.put(name);
  text_.put(time.begin - base_);
  text_.put(R"(,"dur":)");
  text_.put(time.end - time.begin);
  text_.put(end);
}

void Trace::arrow(std::string_view begin, std::uint64_t id, std::uint32_t tid,
                  TimePoint at) {
  text_.make_room(begin.size() + kMostOfEvent);
  text_.put(begin);
  text_.put(tid);
  text_.put(R"(,"id":)");
  text_.put(id);
  text_.put(R"(,"ts":)");
  text_.put(at - base_);
  text_.put("}");
}

void Trace::add_fetch(const TracedSample& sample, std::uint64_t id) {
  const Interval fetch = {sample.times->reserved, sample.times->fetched};
  const std::uint32_t tid = lane(fetches_, fetch);
  slice(tid, kFetch, fetch, args_of(sample.id));
  arrow(arrow_begin_, id, tid, fetch.begin);
  for (const Delay& delay : sample.times->delays) {
    const bool is_cache = delay.cause == Stall::kCacheIo;
    slice(tid, is_cache ? kCache : named(to_string(delay.cause)),
          at_least(delay.time));
    if (is_cache || delay.cause == Stall::kPeer) {
      arrow(arrow_on_, id, tid, delay.time.begin);
    }
  }
}

// The kernel's copy of its text is most of a trace's cost, so a sample repeats
// no byte that the batch, to which its arrow leads, has already.
void Trace::add_sample(const TracedSample& sample, TimePoint batch_at,
                       std::uint32_t batch_tid) {
  const SampleTimes& times = *sample.times;
  const Interval work = at_least({times.fetched, times.finished});
  const std::uint32_t work_tid = lane(decodes_, work);
  const TimePoint decoded = std::clamp(times.decoded, work.begin, work.end);
  const Nanoseconds transform = work.end - decoded;
  const bool is_drawn = transform >= kLeastTransform;
  const Nanoseconds told = is_drawn ? Nanoseconds(0) : transform;
  slice(work_tid, kDecode, at_least({work.begin, decoded}),
        args_of(sample.id, told));
  if (is_drawn) slice(work_tid, kTransform, {decoded, work.end});
  // An arrow belongs to the slice that began last before it, in the file too.
  const std::uint64_t id = next_arrow_++;
  if (times.fetched - times.reserved >= kLeastFetch) {
    add_fetch(sample, id);
    arrow(arrow_on_, id, work_tid, work.begin);
  } else {
    arrow(arrow_begin_, id, work_tid, work.begin);
  }
  arrow(arrow_end_, id, batch_tid, batch_at);
}

std::string_view Trace::args_of(SampleId sample, Nanoseconds transform) {
  args_.clear();
  args_.make_room(kMostOfEvent);
  args_.put(R"(,"args":{"sample":)");
  args_.put(sample.value);
  if (transform > Nanoseconds(0)) {
    args_.put(R"(,"transform_us":)");
    args_.put(transform);
  }
  args_.put("}}");
  return args_.view();
}

void Trace::add(const TracedBatch& batch) {
  if (is_full_ || batch.samples.empty()) return;
  const std::size_t samples = batch.samples.size();
  const auto last = std::ranges::max_element(
      batch.samples, {},
      [](const TracedSample& sample) { return sample.times->finished; });
  const std::size_t drawn = pace_.take(samples, batch.wait.end);
  const std::string args = fmt::format(R"(,"args":{{"epoch":{},"step":{}}}}})",
                                       batch.epoch, batch.step);
  const Interval put_together = at_least({last->times->finished, batch.ready});
  const std::uint32_t tid = lane(batches_, put_together);
  slice(
      tid, kBatch, put_together,
      drawn == samples
          ? args
          : fmt::format(
                R"(,"args":{{"epoch":{},"step":{},"drawn":{},"samples":{}}}}})",
                batch.epoch, batch.step, drawn, samples));
  // The sample that all waited for replaces the nearest one drawn.
  const auto critical = static_cast<std::size_t>(last - batch.samples.begin());
  for (std::size_t i = 0; i < drawn; ++i) {
    const std::size_t row = i * samples / drawn;
    const std::size_t next = (i + 1) * samples / drawn;
    const bool has_it = row <= critical && critical < next;
    add_sample(batch.samples[has_it ? critical : row], put_together.begin, tid);
  }
  if (given_ != TimePoint()) {
    slice(kTraining, kStep, at_least({given_, batch.wait.begin}));
  }
  const Interval wait = at_least(batch.wait);
  slice(kTraining, kWait, wait, args);
  const std::uint64_t id = next_arrow_++;
  arrow(arrow_begin_, id, tid, put_together.begin);
  arrow(arrow_end_, id, kTraining, wait.begin);
  given_ = wait.end;
  if (text_.size() >= kFlushBytes) flush();
}

void Trace::end_epoch(TimePoint asked) {
  if (is_full_ || given_ == TimePoint()) return;
  slice(kTraining, kStep, at_least({given_, asked}));
  given_ = {};  // The time before the next epoch is not a step.
  flush();
}

void Trace::flush() {
  // The next write overwrites the end.
  const std::uint64_t at = written_bytes_;
  written_bytes_ += text_.size();
  text_.make_room(kEnd.size());
  text_.put(kEnd);
  const std::string_view text = text_.view();
  if (std::fseek(file_, static_cast<long>(at), SEEK_SET) != 0 ||
      std::fwrite(text.data(), 1, text.size(), file_) != text.size() ||
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
