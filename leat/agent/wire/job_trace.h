// The last moments of a loader, as reported to its agent: the latest steps, and
// a few samples of each.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace leat {

/// Times are microseconds since JobTrace::begin_seconds, at most
/// kMostTraceTime; earlier times are 0.
inline constexpr std::uint64_t kMostTraceTime = 9'999'999'999;

struct TraceSample {
  std::uint64_t id = 0;
  std::uint64_t reserved = 0;  ///< Its fetch began.
  std::uint64_t fetched = 0;   ///< Its last byte arrived.
  std::uint64_t decoded = 0;
  std::uint64_t finished = 0;  ///< It was in its batch.
  /// The part of the fetch in which a cache or a peer was asked, or a cache
  /// took over the bytes: the longest of these. Both 0: there was none.
  std::uint64_t cache_begin = 0;
  std::uint64_t cache_end = 0;

  bool operator==(const TraceSample&) const = default;
};

struct TraceStep {
  static constexpr std::size_t kMostSamples = 12;

  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  std::uint64_t size = 0;   ///< Samples of the batch on this rank.
  std::uint64_t ready = 0;  ///< The batch was put together.
  /// When training asked for it, and when it was delivered; the step lasts from
  /// there until the next is asked for.
  std::uint64_t asked = 0;
  std::uint64_t given = 0;
  /// Some of them: the one that finished last, and others at even intervals.
  std::vector<TraceSample> samples = {};

  bool operator==(const TraceStep&) const = default;
};

/// Holds numbers only: no key and no text of the user's.
struct JobTrace {
  static constexpr std::size_t kMostSteps = 12;

  double begin_seconds = 0;           ///< Unix time.
  std::vector<TraceStep> steps = {};  ///< The latest last.

  bool operator==(const JobTrace&) const = default;
};

/// One JSON object: docs/reference/agent-view.md. If there are too many, keeps
/// the latest steps and the first samples of each.
std::string to_json(const JobTrace& trace);

}  // namespace leat
