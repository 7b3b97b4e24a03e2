#include "leat/tune/job_fit.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace leat {
namespace {

constexpr double kKept = 0.8;     // The weight of older reports, with each
                                  // newer one.
constexpr double kBehind = 0.85;  // Found less than this part: behind.
constexpr std::uint32_t kPatience =
    3;  // Reports behind before a cap is learned.
// The same of a job of several nodes, which hear of each other with a delay.
constexpr std::uint32_t kPatienceBetweenNodes = 8;
constexpr double kExplainedCapRise = 1.05;
constexpr double kCapRise = 1.003;   // By each report.
constexpr double kRoomyLoad = 0.75;  // Above, bursts of reads meet.
// The share of the latency that is found.
constexpr double kLeastHope = 0.7;
constexpr double kHopeful = 0.9;                // By each report without room,
constexpr std::uint32_t kLongWithoutRoom = 60;  // after so many.
constexpr double kLeastConfidence = 0.3;
constexpr double kMostHits = 0.99;  // That tell what there is without one.
// The weight of older reports: caches fill by the epoch, and not by the second.
constexpr double kKeptOfHits = 0.99;
constexpr double kTellingVariance = 0.01;  // Variance of the share of hits.

constexpr std::array kCounts = {
    &JobReport::samples,      &JobReport::epochs,
    &JobReport::reads,        &JobReport::read_bytes,
    &JobReport::read_seconds, &JobReport::tasks,
    &JobReport::busy_seconds, &JobReport::cache_hits,
    &JobReport::cache_misses, &JobReport::decoded_hits,
    &JobReport::threads,      &JobReport::in_flight};
constexpr std::array kTimes = {&JobReport::seconds,
                               &JobReport::training_seconds,
                               &JobReport::wait_seconds};
/// As the latest report has them.
constexpr std::array kFigures = {&JobReport::kept_bytes,
                                 &JobReport::saved_seconds};

/// The part of reads that went to the store; 1 where there is no cache.
double missed_part_of(const JobReport& report) {
  const double asked = report.cache_hits + report.cache_misses;
  return asked > 0 ? report.cache_misses / asked : 1;
}

/// The part of samples that a hit spared their decoding.
double decoded_part_of(const JobReport& report) {
  if (report.tasks <= 0) return 0;
  return std::clamp(report.decoded_hits / report.tasks, 0.0, kMostHits);
}

/// The seconds of a thread for a sample, with the hits of `report`.
double seconds_with_hits(const JobSpeed& speed, const JobReport& report) {
  return seconds_per_sample({.rate_per_thread = speed.rate_per_thread,
                             .dataset_bytes = 1,
                             .saved_seconds = speed.saved_seconds},
                            /*cache_bytes=*/decoded_part_of(report));
}

/// The limits that held while the report was made.
Grant limits_of(const JobReport& report, const Grant& grant) {
  return {.threads = report.threads,
          .in_flight = report.in_flight,
          .bytes_per_second = grant.bytes_per_second};
}

}  // namespace

JobReport together(std::span<const JobReport> ranks) {
  JobReport all{.threads = 0, .in_flight = 0};
  const auto count = static_cast<double>(ranks.size());
  // Ranks that have not yet found them out count as the others.
  const auto telling = static_cast<double>(std::ranges::count_if(
      ranks, [](const JobReport& one) { return one.kept_bytes > 0; }));
  for (const JobReport& one : ranks) {
    for (const auto field : kCounts) all.*field += one.*field;
    for (const auto field : kTimes) all.*field += one.*field / count;
    if (one.kept_bytes <= 0) continue;
    for (const auto field : kFigures) all.*field += one.*field / telling;
  }
  return all;
}

double made_in(const JobReport& report) {
  const bool waits = report.wait_seconds > report.seconds / 2;
  return waits && report.tasks > 0 ? report.tasks : report.samples;
}

JobReport in_turn(const JobReport& earlier, const JobReport& later) {
  JobReport both = later;
  for (const auto field : kCounts) both.*field += earlier.*field;
  for (const auto field : kTimes) both.*field += earlier.*field;
  both.threads = later.threads;
  both.in_flight = later.in_flight;
  return both;
}

bool is_credible(const JobReport& report) {
  for (const auto field : kCounts) {
    if (!std::isfinite(report.*field) || report.*field < 0) return false;
  }
  for (const auto field : kTimes) {
    if (!std::isfinite(report.*field) || report.*field < 0) return false;
  }
  for (const auto field : kFigures) {
    if (!std::isfinite(report.*field) || report.*field < 0) return false;
  }
  // A batch or a task that ends in an interval may have begun in an earlier
  // one, so only sums over many are checked, by `seen_`, and loosely here.
  return report.seconds > 0 && report.threads >= 1 && report.in_flight >= 1 &&
         report.samples <= 1e12 && report.read_bytes <= 1e15;
}

void JobFit::observe(const JobReport& report, const Grant& grant,
                     const Surroundings& around) {
  const std::optional<Pace>& elsewhere = around.elsewhere;
  if (!is_credible(report)) {
    error_ = std::min(2.0, error_ + 0.5);
    return;
  }
  const double made = made_in(report);
  found_rate_ = made / report.seconds;
  // Between two steps, or not training: nothing to learn from.
  if (made <= 0) return;
  predicted_rate_ = 0;
  if (reports_ > 0) {
    JobSpeed now = speed(elsewhere ? elsewhere->ceiling : 0);
    // Past hits are seen, but a cache that fills has not yet reached its final
    // share.
    if (now.saved_seconds > 0) {
      now.rate_per_thread = 1 / seconds_with_hits(now, report);
    }
    now.dataset_bytes = 0;
    now.reads_per_sample *= missed_part_of(report);
    now.read_bytes_per_sample *= missed_part_of(report);
    const double here = predict(now, limits_of(report, grant)).rate;
    const double there = elsewhere ? elsewhere->reached : kUnbounded;
    const double expected = std::min(here, there);
    if (std::isfinite(expected) && expected > 0) {
      predicted_rate_ = expected;
      // News from other nodes is a while old.
      const bool has_risen_there = there < here && found_rate_ > expected;
      if (settling_ == 0 && !has_risen_there) {
        const double off = std::abs(found_rate_ / expected - 1);
        error_ = kKept * error_ + (1 - kKept) * std::min(off, 2.0);
      }
    }
  }
  for (const auto field : kCounts) {
    seen_.*field = kKept * seen_.*field + report.*field;
  }
  for (const auto field : kTimes) {
    seen_.*field = kKept * seen_.*field + report.*field;
  }
  for (const auto field : kFigures) seen_.*field = report.*field;
  learn_saving(report);
  if (report.reads > 0) {
    latency_seconds_ = seen_.read_seconds / seen_.reads;
    bytes_per_read_ = seen_.read_bytes / seen_.reads;
    learn_latency(report, around.link_load);
  }
  if (seen_.samples > 0) ++reports_;
  learn_cap(report, grant, elsewhere);
}

void JobFit::learn_latency(const JobReport& report, double link_load) {
  const double found = report.read_seconds / report.reads;
  const bool is_long = without_room_ >= kLongWithoutRoom;
  if (latency_with_room_ <= 0) {
    latency_with_room_ = found;
  } else if (link_load < kRoomyLoad) {
    latency_with_room_ =
        is_long ? found : kKept * latency_with_room_ + (1 - kKept) * found;
    without_room_ = 0;
  } else {
    // Not seen for long: less is believed until others are held back for it,
    // and then it is seen.
    if (is_long) latency_with_room_ *= kHopeful;
    latency_with_room_ = std::clamp(
        latency_with_room_, kLeastHope * latency_seconds_, latency_seconds_);
    ++without_room_;
  }
}

/// A hit saves at most the time that a sample would take without it.
double JobFit::saved_seconds() const {
  if (seen_.tasks <= 0) return 0;
  const double seconds = seen_.busy_seconds / seen_.tasks;
  return believed_ *
         std::min(seen_.saved_seconds, seconds / (1 - decoded_part_of(seen_)));
}

void JobFit::learn_saving(const JobReport& report) {
  if (report.tasks <= 0 || report.saved_seconds <= 0) return;
  const double hits = decoded_part_of(report);
  const double seconds = report.busy_seconds / report.tasks;
  const auto add = [](double& sum, double value) {
    sum = kKeptOfHits * sum + value;
  };
  add(hits_.weight, 1);
  add(hits_.hits, hits);
  add(hits_.seconds, seconds);
  add(hits_.hits_squared, hits * hits);
  add(hits_.product, hits * seconds);
  const double mean = hits_.hits / hits_.weight;
  const double variance = hits_.hits_squared / hits_.weight - mean * mean;
  if (variance < kTellingVariance) return;
  // By least squares: seconds = those without a hit - hits * saved.
  const double saved =
      (mean * hits_.seconds - hits_.product) / hits_.weight / variance;
  believed_ = std::clamp(saved / report.saved_seconds, 0.0, 1.0);
}

void JobFit::share_changed() {
  settling_ = 2;
  behind_ = 0;
}

void JobFit::learn_cap(const JobReport& report, const Grant& grant,
                       const std::optional<Pace>& elsewhere) {
  if (settling_ > 0) {
    --settling_;
    return;
  }
  // Also compares the job with its own figures of now, so that a job that has
  // changed does not count as behind its earlier speed.
  JobSpeed now;
  if (report.samples > 0 && report.training_seconds > 0) {
    now.compute_ceiling = report.samples / report.training_seconds;
  }
  if (elsewhere) {
    now.compute_ceiling = std::max(now.compute_ceiling, elsewhere->ceiling);
  }
  if (report.busy_seconds > 0) {
    now.rate_per_thread = report.tasks / report.busy_seconds;
  }
  if (report.reads > 0) {
    now.latency_seconds = report.read_seconds / report.reads;
    now.reads_per_sample = report.reads / made_in(report);
    now.read_bytes_per_sample = report.read_bytes / made_in(report);
  }
  const double own = predict(now, limits_of(report, grant)).rate;
  const bool is_behind =
      found_rate_ < kBehind * predicted_rate_ && found_rate_ < kBehind * own;
  behind_ = is_behind ? behind_ + 1 : 0;
  if (behind_ >= (elsewhere ? kPatienceBetweenNodes : kPatience)) {
    cap_ = found_rate_ * 1.02;
  } else if (std::isfinite(cap_)) {
    const bool is_explained = found_rate_ > 0.95 * own;
    cap_ = std::max(cap_ * (is_explained ? kExplainedCapRise : kCapRise),
                    found_rate_);
  }
}

JobSpeed JobFit::speed(double ceiling) const {
  JobSpeed speed;
  if (seen_.samples <= 0) return speed;
  // Less than this is not training but the loop around it.
  if (seen_.training_seconds > 1e-4 * seen_.seconds) {
    speed.compute_ceiling = seen_.samples / seen_.training_seconds;
  }
  speed.compute_ceiling =
      std::min(std::max(speed.compute_ceiling, ceiling), cap_);
  if (seen_.busy_seconds > 0 && seen_.tasks > 0) {
    speed.saved_seconds = saved_seconds();
    speed.rate_per_thread =
        seen_.tasks /
        (seen_.busy_seconds +
         decoded_part_of(seen_) * speed.saved_seconds * seen_.tasks);
  }
  const double asked = seen_.cache_hits + seen_.cache_misses;
  // Counts samples that were made: at the beginning, more than were delivered.
  speed.reads_per_sample =
      (asked > 0 ? asked : seen_.reads) / std::max(seen_.samples, seen_.tasks);
  speed.latency_seconds = latency_seconds_;
  speed.read_bytes_per_sample = speed.reads_per_sample * bytes_per_read_;
  speed.dataset_bytes =
      dataset_samples_ *
      (seen_.kept_bytes > 0 ? seen_.kept_bytes : speed.read_bytes_per_sample);
  return speed;
}

JobSpeed JobFit::speed_as_it_hits(double ceiling) const {
  JobSpeed found = speed(ceiling);
  if (found.saved_seconds > 0) {
    found.rate_per_thread = seen_.tasks / seen_.busy_seconds;
    found.saved_seconds = 0;
  }
  found.dataset_bytes = 0;
  found.reads_per_sample *= missed_part_of(seen_);
  found.read_bytes_per_sample *= missed_part_of(seen_);
  return found;
}

double JobFit::confidence() const {
  const double from_reports = 1 - std::pow(0.5, reports_);
  return from_reports * std::max(0.0, 1 - 2 * error_);
}

bool JobFit::is_known() const {
  return reports_ >= 2 && confidence() >= kLeastConfidence;
}

}  // namespace leat
