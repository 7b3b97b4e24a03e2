// A job's properties, learned from its reports.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "leat/tune/job_speed.h"
#include "leat/tune/pace.h"

namespace leat {

/// The work of one job in an interval: differences of engine/loader_totals.h.
struct JobReport {
  double seconds = 0;
  double samples = 0;  ///< Delivered.
  double epochs = 0;   ///< Begun.
  double training_seconds =
      0;                    ///< Between a batch and the asking for the next.
  double wait_seconds = 0;  ///< In next().
  double reads = 0;         ///< Answered by the store.
  double read_bytes = 0;
  double read_seconds = 0;  ///< Sum over reads.
  double tasks = 0;         ///< Samples that threads worked on.
  double busy_seconds = 0;  ///< Sum over threads.
  double cache_hits = 0;
  double cache_misses = 0;
  double decoded_hits = 0;  ///< Samples whose decoding a hit has saved.
  double threads = 1;       ///< Those that could work.
  double in_flight = 1;     ///< Those that could be.
  /// The average bytes of a sample in its cache; 0: as many as are read for it.
  double kept_bytes = 0;
  double saved_seconds = 0;  ///< As in JobSpeed: the job's own figure.
};

/// Combines the reports of a job's ranks on one node: counts and limits are
/// added, times are averaged. REQUIRES: not empty.
JobReport together(std::span<const JobReport> ranks);

/// Samples. Batches are coarse: a second of a job that waits may bring none, or
/// two. So for a job that waits it counts the samples that its threads made.
double made_in(const JobReport& report);
/// The report on both intervals, with the limits of the later one.
JobReport in_turn(const JobReport& earlier, const JobReport& later);

/// False for an impossible report: not finite, negative, or more time than has
/// passed.
bool is_credible(const JobReport& report);

/// The conditions around a job while a report was made.
struct Surroundings {
  std::optional<Pace> elsewhere = {};  ///< For a job of several nodes.
  /// Read by all, / what the node's link brings: near 1, reads wait for others.
  double link_load = 0;
};

/// Fits a JobSpeed to reports as they arrive; the latest count most.
///
/// A job may say how much a hit on a decoded sample saves. It is believed as
/// far as samples took less time while more of them hit, once that was seen.
///
/// A job that becomes slower than its own figures say is judged by what was
/// found: its speed is capped there, and the cap rises slowly. So whatever a
/// job misreports, or the model ignores, costs that job alone.
class JobFit {
 public:
  /// `dataset_samples`: in an epoch, for all ranks; 0 if unknown.
  explicit JobFit(double dataset_samples) : dataset_samples_(dataset_samples) {}

  /// Takes a report on an interval in which `grant` held and, for a job of
  /// several nodes, the others' reports: if they claim a rate that the job does
  /// not reach, that costs only this job, too.
  void observe(const JobReport& report, const Grant& grant,
               const Surroundings& around = {});
  /// The next report mixes two shares, so no cap is learned from it.
  void share_changed();

  /// The speed that reports have shown. Training is as fast as it was here or,
  /// if that is faster, as `ceiling`.
  JobSpeed speed(double ceiling = 0) const;
  /// In [0, 1]: rises with the number of reports, and falls with their distance
  /// from the prediction.
  double confidence() const;
  /// The latency of a read while the link has room. Shares depend on it;
  /// otherwise a wait that others cause would count as the job's own. 0:
  /// unknown as yet.
  double latency_with_room() const { return latency_with_room_; }
  /// The same with what its cache serves now, however large the cache may be.
  JobSpeed speed_as_it_hits(double ceiling = 0) const;
  /// Whether shares may be based on speed().
  bool is_known() const;
  double found_rate() const { return found_rate_; }  ///< Samples a second.
  /// The prediction for the last report, made before it was learned from; 0:
  /// unknown as yet.
  double predicted_rate() const { return predicted_rate_; }

 private:
  static constexpr std::uint32_t kNever = 1u << 30;

  /// Weighted sums over reports: the share of samples that hit decoded ones,
  /// and the thread seconds of a sample.
  struct Spread {
    double weight = 0;
    double hits = 0;
    double seconds = 0;
    double hits_squared = 0;
    double product = 0;
  };

  void learn_latency(const JobReport& report, double link_load);
  void learn_saving(const JobReport& report);
  double saved_seconds() const;
  void learn_cap(const JobReport& report, const Grant& grant,
                 const std::optional<Pace>& elsewhere);

  double dataset_samples_;
  JobReport seen_;  ///< Sums in which older reports weigh less.
  /// The latency of reads; kept while a cache serves them all.
  double latency_seconds_ = 0;
  double latency_with_room_ = 0;
  std::uint32_t without_room_ = kNever;  ///< Reports since the link had some.
  double bytes_per_read_ = 0;
  Spread hits_;  ///< The hits of each report.
  /// The share that is believed of the savings it reports for a hit.
  double believed_ = 1;
  double found_rate_ = 0;
  double predicted_rate_ = 0;
  double error_ = 0;           ///< Relative, smoothed.
  double cap_ = kUnbounded;    ///< The cap of speed().
  std::uint32_t reports_ = 0;  ///< Those with samples.
  /// The number of last reports below the prediction.
  std::uint32_t behind_ = 0;
  std::uint32_t settling_ = 0;  ///< Those that set no cap.
};

}  // namespace leat
