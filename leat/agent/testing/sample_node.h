// An imaginary node, for tests and benchmarks of displays.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/agent/node_view.h"
#include "leat/agent/wire/job_trace.h"

namespace leat::testing {

/// The Unix time at which it begins.
inline constexpr double kSampleBegin = 1'800'000'000;

struct SampleKind {
  std::string_view name;
  std::string_view dataset;
  std::string_view bottleneck;
  double rate;
};

inline constexpr SampleKind kSampleKinds[] = {
    {"resnet50", "s3://photos/train", "decode", 2100},
    {"llm-tokens", "s3://text/windows", "training", 640},
    {"clip", "gs://pairs/shards", "storage", 1250},
    {"detector", "/data/boxes", "transform", 310},
    {"speech", "https://voices.example/wav", "storage", 900},
};

inline std::string sample_id(std::size_t job) {
  return "job-" + std::to_string(job + 1);
}

inline JobPoint sample_point(std::size_t job, double seconds) {
  const SampleKind& kind = kSampleKinds[job % std::size(kSampleKinds)];
  const double wave = std::sin(seconds / 17 + double(job));
  return {.time_seconds = kSampleBegin + seconds,
          .job = sample_id(job),
          .threads = 4 + std::floor(seconds / 20 + double(job)) -
                     4 * std::floor((seconds / 20 + double(job)) / 4),
          .in_flight = 32 + 8 * double(job % 5),
          .found_rate = kind.rate * (1 + 0.05 * wave),
          .predicted_rate = kind.rate,
          .wait_fraction = 0.1 + 0.08 * wave,
          .bytes_per_second =
              seconds < 60 ? 25e6 : 1e6 * double(10 + 5 * (job % 5)),
          .ram_bytes = double(8ULL << 30)};
}

inline JobView sample_job(std::size_t job, double seconds) {
  const SampleKind& kind = kSampleKinds[job % std::size(kSampleKinds)];
  const JobPoint point = sample_point(job, seconds);
  const double reads = std::floor(kind.rate * seconds / 10);
  JobView view{
      .id = sample_id(job),
      .name = std::string(kind.name),
      .dataset = std::string(kind.dataset),
      .user = std::uint32_t(1000 + job % 3),
      .user_name = job % 3 == 0   ? "ada"
                   : job % 3 == 1 ? "grace"
                                  : "",
      .pids = {std::int32_t(4000 + job)},
      .local_ranks = 1,
      .world_size = std::uint32_t(job % 4 == 1 ? 2 : 1),
      .since_seconds = kSampleBegin,
      .found_rate = point.found_rate,
      .predicted_rate = point.predicted_rate,
      .confidence = 0.8,
      .compute_ceiling = 1.2 * kind.rate,
      .wait_fraction = point.wait_fraction,
      .stalls = {{"decode", 0.6 * point.wait_fraction},
                 {"storage", 0.4 * point.wait_fraction}},
      .bottleneck = std::string(kind.bottleneck),
      .totals = {{&counters::kGets, reads},
                 {&counters::kLists, 3},
                 {&counters::kReadBytes, reads * 100'000},
                 {&counters::kRequestDollars, 0.125},
                 {&counters::kTransferDollars, 0},
                 {&counters::kWaitSeconds, point.wait_fraction * seconds},
                 {&counters::kStalledDollars, 0.25},
                 {&counters::kRamHits, reads * 5},
                 {&counters::kDiskHits, reads * 2},
                 {&counters::kPeerHits, reads},
                 {&counters::kCacheMisses, reads * 2},
                 {&counters::kRamBytes, std::ldexp(job % 5 + 1, 30)},
                 {&counters::kDiskBytes, std::ldexp(job % 5 + 1, 34)}}};
  view.share.threads = std::size_t(point.threads);
  view.share.in_flight = std::size_t(point.in_flight);
  view.share.ram_bytes = std::uint64_t(8) << 30;
  return view;
}

/// One decision every ten seconds; the effect of the latest is not known yet.
inline std::vector<NumberedDecision> sample_decisions(std::size_t jobs,
                                                      double seconds) {
  std::vector<NumberedDecision> all;
  const auto last = std::uint64_t(seconds / 10);
  for (std::uint64_t i = last > 100 ? last - 99 : 1; i <= last; ++i) {
    const std::size_t job = i % jobs;
    NumberedDecision numbered;
    numbered.number = i;
    numbered.time_seconds = kSampleBegin + 10 * double(i);
    numbered.job_name = kSampleKinds[job % std::size(kSampleKinds)].name;
    Decision& decision = numbered.decision;
    decision.at_seconds = 10 * double(i);
    decision.job = sample_id(job);
    decision.setting = i % 3 == 0 ? Setting::kRamBytes : Setting::kThreads;
    decision.before = i % 3 == 0 ? double(4ULL << 30) : 4;
    decision.after = i % 3 == 0 ? double(8ULL << 30) : 6;
    decision.reason = i % 3 == 0
                          ? "the second epoch reads the same again"
                          : "decode is the bottleneck: 4 threads at 97 %";
    decision.expected_gain = 0.4;
    if (i < last) decision.found_gain = 0.37;
    all.push_back(std::move(numbered));
  }
  return all;
}

/// The node `seconds` after its beginning, with its jobs at work and a point
/// for each second of the last ten minutes. Depends on its arguments alone.
inline NodeView sample_node(std::size_t jobs, double seconds) {
  NodeView view{
      .name = "node-7",
      .time_seconds = kSampleBegin + seconds,
      .objective = "throughput",
      .cores = 32,
      .cores_busy = 21.5 + std::sin(seconds / 9),
      .cores_busy_outside = 3.25,
      .memory_bytes = std::uint64_t(256) << 30,
      .in_flight = 512,
      .links = {{.bytes_per_second = 1e9,
                 .read_bytes_per_second = jobs > 0 ? 4e8 : 0},
                {.bucket = "s3://photos",
                 .bytes_per_second = 256.0 * (1 << 20),
                 .read_bytes_per_second = jobs > 0 ? 128.0 * (1 << 20) : 0}}};
  for (std::size_t job = 0; job < jobs; ++job) {
    view.jobs.push_back(sample_job(job, seconds));
  }
  if (jobs > 0) view.decisions = sample_decisions(jobs, seconds);
  for (double at = std::max(0.0, std::floor(seconds) - 599); at <= seconds;
       ++at) {
    for (std::size_t job = 0; job < jobs; ++job) {
      view.history.push_back(sample_point(job, at));
    }
  }
  return view;
}

/// Twelve steps of 50 ms each, of which training waits for every third: a cache
/// is asked first, then the store for the other samples.
inline JobTrace sample_trace(double seconds) {
  JobTrace trace{.begin_seconds = kSampleBegin + seconds};
  const auto first = std::uint64_t(seconds) * 20;
  for (std::uint64_t i = 0; i < JobTrace::kMostSteps; ++i) {
    const std::uint64_t begin = 100'000 + 50'000 * i;
    TraceStep step{.epoch = 1,
                   .step = first + i,
                   .size = 32,
                   .ready = begin + 2'000,
                   .asked = begin + (i % 3 == 0 ? 0 : 2'500),
                   .given = begin + 2'500};
    for (std::uint64_t s = 0; s < 4; ++s) {
      const bool is_cached = s % 2 == 1;
      const std::uint64_t reserved = begin - 90'000 + 3'000 * s;
      const std::uint64_t fetched = reserved + (is_cached ? 4'000 : 60'000);
      step.samples.push_back({.id = 100 * i + s,
                              .reserved = reserved,
                              .fetched = fetched,
                              .decoded = fetched + 15'000,
                              .finished = s == 0 ? begin : fetched + 16'000,
                              .cache_begin = reserved,
                              .cache_end = reserved + 3'000});
    }
    trace.steps.push_back(std::move(step));
  }
  return trace;
}

/// Jobs without a cache; the last decision changes nothing.
inline NodeView uncached_node(std::size_t jobs, double seconds) {
  NodeView view = sample_node(jobs, seconds);
  for (JobView& job : view.jobs) {
    std::erase_if(job.totals, [](const auto& total) {
      return total.first->part == JobCounter::Part::kCache;
    });
  }
  if (!view.decisions.empty()) {
    Decision& last = view.decisions.back().decision;
    last.setting = Setting::kThreads;
    last.before = last.after = 3;
    last.reason = "nothing to gain: no other shares are faster";
    last.expected_gain.reset();
  }
  return view;
}

/// Names that a page, a terminal or a parser could misread.
inline NodeView hostile_node() {
  NodeView view = sample_node(2, 30);
  view.name = "</script><script>alert(1)</script>";
  view.jobs[0].name = "<img src=x onerror=alert(1)>\x1b[2J\"\\\n}";
  view.jobs[0].dataset = "https://user:hunter2@host/path?X-Amz-Signature=feed";
  view.jobs[0].stalls["bad\"cause\\\n"] = 0.01;
  view.jobs[1].name = "\xff\xfe half \xe2\x82";
  view.jobs[1].bottleneck = std::string("\0nul", 4);
  view.jobs[1].found_rate = NAN;
  view.jobs[1].compute_ceiling = INFINITY;
  view.decisions.back().decision.reason =
      "reading s3://AKIA:sec/ret@b/key was <b>slow</b>";
  view.decisions.back().job_name = view.jobs[0].name;
  return view;
}

}  // namespace leat::testing
