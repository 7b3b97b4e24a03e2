// A loader that is arithmetic, to test the tuner with.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>

#include "leat/tune/observation.h"
#include "leat/tune/tuner.h"

namespace leat {

/// The bounds of a synthetic pipeline.
struct SyntheticWorld {
  double latency_seconds = 0.01;  ///< Before the first byte.
  double connection_bytes_per_second = 1e12;
  double reads_per_sample = 1;
  double bytes_per_read = 100e3;
  /// Not 0: a sample is a range so long, read in parts, and no more bytes than
  /// `bytes_ahead` are planned ahead; then the two above are not looked at.
  double range_bytes = 0;
  double bytes_ahead = 1e12;
  double store_bytes_per_second = 1e12;
  double task_seconds = 0.001;  ///< On a core, for a sample.
  double cores = 2;             ///< That nobody else takes.
  double others = 0;            ///< Busy threads of others, on the same cores.
  double training_seconds = 0;  ///< For a sample.
  double failed_share = 0;      ///< A share of reads.
  double late_share = 0;
  double noise = 0;  ///< Standard deviation of a second's speed.
};

/// Counts what a loader in such a world would have counted, in virtual time.
class SyntheticPipeline {
 public:
  SyntheticPipeline(SyntheticWorld world, Settings settings, Observation limits,
                    std::uint64_t seed = 1)
      : world_(world), now_(limits), random_(seed) {
    set(settings);
  }

  void set(Settings settings) {
    now_.threads = settings.threads;
    now_.in_flight = settings.in_flight;
    if (settings.part_bytes != 0) now_.part_bytes = settings.part_bytes;
    now_.lookahead =
        std::max<std::uint64_t>(2 * settings.in_flight, settings.lookahead);
  }
  void change(SyntheticWorld world) { world_ = world; }
  void begin_epoch() { ++now_.epochs; }
  void set_limits(std::size_t threads, std::size_t in_flight) {
    now_.most_threads = threads;
    now_.most_in_flight = in_flight;
  }

  /// Samples a second with these settings and without noise.
  double speed(std::size_t threads, std::size_t in_flight) const {
    const SyntheticWorld& w = world_;
    const double beside_each_other = std::min(static_cast<double>(in_flight),
                                              w.bytes_ahead / bytes_per_read());
    const double requests =
        beside_each_other / (read_seconds() * reads_per_sample());
    const double bandwidth =
        w.store_bytes_per_second / (bytes_per_read() * reads_per_sample());
    double speed = std::min(requests, bandwidth);
    if (w.task_seconds > 0) {
      speed = std::min(speed, cores_of(threads) / w.task_seconds);
    }
    if (w.training_seconds > 0) speed = std::min(speed, 1 / w.training_seconds);
    return speed;
  }
  /// The cores that this many threads get: as large a part as each other
  /// thread.
  double cores_of(std::size_t threads) const {
    const auto t = static_cast<double>(threads);
    return std::min(t, world_.cores * t / (t + world_.others));
  }
  double speed() const { return speed(now_.threads, now_.in_flight); }

  double reads_per_sample() const {
    if (world_.range_bytes == 0) return world_.reads_per_sample;
    return std::max(1.0, std::floor(world_.range_bytes /
                                    static_cast<double>(now_.part_bytes)));
  }
  double bytes_per_read() const {
    return world_.range_bytes == 0 ? world_.bytes_per_read
                                   : world_.range_bytes / reads_per_sample();
  }
  double read_seconds() const {
    return world_.latency_seconds +
           bytes_per_read() / world_.connection_bytes_per_second;
  }

  /// The best of all that the limits allow.
  double best() const {
    double best = 0;
    for (std::size_t t = 1; t <= now_.most_threads; ++t) {
      for (std::size_t w = 1; w <= now_.most_in_flight; w *= 2) {
        best = std::max(best, speed(t, w));
      }
    }
    return best;
  }

  const Observation& observed() const { return now_; }

  const Observation& run(double seconds) {
    const SyntheticWorld& w = world_;
    double factor = 1;
    if (w.noise > 0) {
      std::normal_distribution<double> noise(1, w.noise);
      factor = std::clamp(noise(random_), 0.3, 1.7);
    }
    const double speed = this->speed() * factor;
    left_ += speed * seconds;
    const double samples = std::floor(left_);
    left_ -= samples;
    const auto count = static_cast<std::uint64_t>(samples);
    const double reads = samples * reads_per_sample();
    const auto threads = static_cast<double>(now_.threads);
    const double slowed = threads / cores_of(now_.threads);
    const double bandwidth =
        w.store_bytes_per_second / (bytes_per_read() * reads_per_sample());
    now_.at_seconds += seconds;
    now_.samples += count;
    now_.tasks += w.task_seconds > 0 ? count : 0;
    now_.reads += static_cast<std::uint64_t>(reads);
    failed_ += reads * w.failed_share;
    late_ += reads * w.late_share;
    now_.failed_reads = static_cast<std::uint64_t>(failed_);
    now_.late_reads = static_cast<std::uint64_t>(late_);
    now_.read_bytes += static_cast<std::uint64_t>(reads * bytes_per_read());
    // If the store is the bound, requests queue there.
    const double in_flight = this->speed() >= 0.99 * bandwidth
                                 ? static_cast<double>(now_.in_flight)
                                 : speed * reads_per_sample() * read_seconds();
    now_.read_seconds +=
        std::min(in_flight, static_cast<double>(now_.in_flight)) * seconds;
    now_.busy_seconds +=
        std::min(threads * seconds, samples * w.task_seconds * slowed);
    now_.cpu_seconds += samples * w.task_seconds;
    const bool trains =
        w.training_seconds > 0 && this->speed() >= 0.999 / w.training_seconds;
    // If training is the bound, the noise is training's.
    const double trained =
        trains ? seconds : std::min(seconds, samples * w.training_seconds);
    now_.training_seconds += trained;
    now_.wait_seconds += seconds - trained;
    now_.storage_wait_seconds += seconds - trained;
    now_.batches = now_.samples / 32;
    return now_;
  }

 private:
  SyntheticWorld world_;
  Observation now_;
  double left_ = 0;
  double failed_ = 0;
  double late_ = 0;
  std::mt19937_64 random_;
};

}  // namespace leat
