// Writes a timeline of every sample for people to look at.
#pragma once
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "leat/base/clock.h"
#include "leat/base/ids.h"
#include "leat/base/result.h"
#include "leat/engine/trace_lanes.h"
#include "leat/engine/trace_pace.h"
#include "leat/engine/trace_text.h"
#include "leat/metrics/stalls.h"

namespace leat {

struct TracedSample {
  SampleId id;
  const SampleTimes* times = nullptr;
};

/// A batch, from its samples' requests to the training step that used it.
struct TracedBatch {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  std::span<const TracedSample> samples;
  TimePoint ready;
  Interval wait;  ///< From training's call until the delivery.
};

/// Writes Chrome's trace format (JSON object format), which Perfetto and
/// chrome://tracing open: a slice for each fetch, decode and transform on
/// lanes of their own, for each batch as it is put together, and for each
/// wait and step of training; arrows (flow events) join related slices.
/// Within a sample's fetch, "cache" is the time in which tiers were searched
/// or written, and "peer" the time in which another node's memory was asked:
/// the arrow passes through each. A sample whose bytes had come with
/// another's has no fetch; a transform of under 10 us is an argument of its
/// decoding ("transform_us"). If there are very many samples a second, only
/// some are drawn (trace_pace.h), evenly over each batch and always including
/// the one that finished last; the batch then tells how many ("drawn",
/// "samples").
///
/// Times are on the wall clock, counted from `baseTimeNanoseconds`, as in the
/// traces of torch.profiler, so that both can be overlaid (`leat.trace.merge`).
/// After each batch the file is a whole JSON text. Writing stops before the
/// file is too large to open.
///
/// Threads: one at a time.
class Trace {
 public:
  static constexpr std::uint64_t kMostBytes = 256 << 20;

  /// Replaces the file at `path`; `rank` names the process in it.
  ///
  /// Errors:
  ///   kNotFound, kPermissionDenied, ...  the file cannot be made
  static Result<std::unique_ptr<Trace>> open(const std::string& path,
                                             std::uint32_t rank);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// REQUIRES: called in the order in which batches were delivered.
  void add(const TracedBatch& batch);
  /// Training asked for another batch at `asked`, and none was left.
  void end_epoch(TimePoint asked);

 private:
  /// Rows of one kind, and how many of them are named.
  struct Lanes {
    const char* name;
    std::uint32_t first_tid;
    std::uint32_t named = 0;
    TraceLanes rows{};
  };

  Trace(std::FILE* file, std::string path, std::uint32_t rank);

  std::uint32_t lane(Lanes& lanes, Interval time);
  void name_thread(std::uint32_t tid, const std::string& name);
  /// `name` with the text around it; `end` is the text from its arguments on.
  void slice(std::uint32_t tid, std::string_view name, Interval time,
             std::string_view end = "}");
  std::string arrow_of(std::string_view kind) const;
  void arrow(std::string_view begin, std::uint64_t id, std::uint32_t tid,
             TimePoint at);
  /// Adds the fetch and its stages, with an arrow through the caches.
  void add_fetch(const TracedSample& sample, std::uint64_t id);
  void add_sample(const TracedSample& sample, TimePoint batch_at,
                  std::uint32_t batch_tid);
  /// Includes a transform that was too short to be drawn.
  std::string_view args_of(SampleId sample, Nanoseconds transform = {});
  void flush();

  std::FILE* const file_;
  const std::string path_;
  const int pid_;
  const TimePoint base_;
  const std::string slice_begin_;
  const std::string arrow_begin_;
  const std::string arrow_on_;
  const std::string arrow_end_;
  TraceText text_;
  TraceText args_;  // The arguments of the sample that is being added.
  std::uint64_t written_bytes_ = 0;
  bool is_full_ = false;
  std::uint64_t next_arrow_ = 1;
  TimePoint given_{};  // When training got the batch before.
  TracePace pace_;
  Lanes fetches_;
  Lanes decodes_;
  Lanes batches_;
};

}  // namespace leat
