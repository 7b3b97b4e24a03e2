#include "leat/engine/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "leat/base/units.h"

namespace leat {
namespace {

/// A smaller share of waiting is not worth a change.
constexpr double kNothing = 0.01;

/// To advise more than this multiple would be no help.
constexpr double kMostTimes = 16;

/// The course of an epoch after its first batch.
struct Course {
  double waited = 0;  // A share of the time, in [0, 1].
  double times = 1;   // The speed-up needed to avoid it.
  Stall cause = Stall::kStorage;
  double part = 0;  // The cause's share of the waiting.
};

Course course_of(const EpochStats& stats) {
  Course course;
  const double elapsed = to_seconds(stats.elapsed - stats.first_batch);
  Nanoseconds wait{0};
  Nanoseconds longest{0};
  for (std::size_t i = 0; i < static_cast<std::size_t>(Stall::kCount); ++i) {
    const auto stall = static_cast<Stall>(i);
    const Nanoseconds time = stats.stalls[stall] - stats.first_stalls[stall];
    wait += time;
    if (time > longest) {
      longest = time;
      course.cause = stall;
    }
  }
  if (elapsed <= 0 || wait.count() <= 0) return course;
  course.waited = std::min(1.0, to_seconds(wait) / elapsed);
  course.part = to_seconds(longest) / to_seconds(wait);
  course.times = elapsed / std::max(elapsed - to_seconds(wait), 1e-9);
  return course;
}

std::string storage(const EpochStats& stats, const RankLimits& share,
                    double times) {
  const std::size_t window = share.in_flight * share.local_ranks;
  if (2 * stats.late_with_full_window < stats.late_batches) {
    return fmt::format(
        "storage, though not all of the {} requests were in flight: it is its "
        "bandwidth, or single requests that are slow",
        window);
  }
  const std::string capped = fmt::format(
      "storage, window capped at {} by {}", window,
      share.in_flight_was_asked ? "max_in_flight=" : "max_in_flight's default");
  if (times > kMostTimes) {
    return capped +
           "; training takes batches faster than any window brings "
           "them: keep them (cache=)";
  }
  // Rounded up to a multiple of eight, since it is an estimate.
  const auto wanted = static_cast<std::size_t>(
      8 * std::ceil(static_cast<double>(window) * times / 8));
  return fmt::format("{}; {} would do", capped, wanted);
}

/// Whether the threads took turns in the user's functions: together they had
/// one core, and spent much of their time waiting for the lock.
bool took_turns(const EpochStats& stats, const RankLimits& share) {
  const double busy = to_seconds(stats.threads.busy);
  return share.threads > 1 && share.cores > 1 &&
         to_seconds(stats.threads.locked) > 0.1 * busy &&
         to_seconds(stats.threads.cpu) < 1.2 * to_seconds(stats.elapsed);
}

std::string threads(std::string_view what, const EpochStats& stats,
                    const RankLimits& share, double times) {
  if (took_turns(stats, share)) {
    return fmt::format(
        "functions of yours in Python, which take turns: {} threads waited "
        "{:.0f} % of their time for the interpreter's lock (GIL); NumPy lets "
        "go of it, and leat.ops.Python(workers=\"processes\") needs none",
        share.threads,
        100 * to_seconds(stats.threads.locked) /
            to_seconds(stats.threads.busy));
  }
  const std::size_t all = share.threads * share.local_ranks;
  const auto wanted =
      static_cast<std::size_t>(std::ceil(static_cast<double>(all) * times));
  if (times > kMostTimes || wanted > share.cores) {
    return fmt::format(
        "{}, on all {} threads; more cores than these {} are "
        "needed{}",
        what, all, share.cores,
        times > kMostTimes ? "" : fmt::format(": {}", wanted));
  }
  return fmt::format("{}, on all {} threads; threads={} would do", what, all,
                     wanted);
}

std::string cause(const EpochStats& stats, const RankLimits& share,
                  const Course& course) {
  switch (course.cause) {
    case Stall::kStorage:
      return storage(stats, share, course.times);
    case Stall::kThrottled:
      return fmt::format(
          "throttled, {} of {} requests had to be sent again because the store "
          "refused them or failed; Leat sends as many as it answers",
          stats.retried, stats.gets);
    case Stall::kPeer:
      return "peers, which answer late; look at the network and load of the "
             "nodes that serve them; peer_patience= bounds the wait";
    case Stall::kOtherJob:
      return "another job of this node, which brings and decodes what both "
             "read; more threads for that one, or a share from leat agent";
    case Stall::kCacheIo:
      return "the cache's disk, which is slower than training; a smaller "
             "disk_limit= or more ram= reads less of it";
    case Stall::kMemory:
      return fmt::format("memory, all of {} is taken; raise memory=",
                         format_bytes(share.memory_bytes * share.local_ranks));
    case Stall::kDecode:
      return threads("decode", stats, share, course.times);
    case Stall::kTransform:
      return threads("ops after the decoder", stats, share, course.times);
    case Stall::kAssemble:
      return "putting batches together; functions of whole batches, if there "
             "are any";
    default:
      return "handing batches over, which were ready; other threads of this "
             "process hold the interpreter or the cores";
  }
}

}  // namespace

std::string verdict_of(const EpochStats& stats, const RankLimits& share) {
  const Course course = course_of(stats);
  if (course.waited < kNothing) return "waiting under 1 %";
  std::string verdict = fmt::format("waiting {:.0f} %: {}", 100 * course.waited,
                                    cause(stats, share, course));
  if (course.part < 0.75) {
    verdict += fmt::format(" ({:.0f} % of the waiting)", 100 * course.part);
  }
  return verdict;
}

}  // namespace leat
