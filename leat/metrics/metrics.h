// The values of the metrics of one process or loader.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "leat/metrics/catalog.h"

namespace leat {

/// One number for every row of the catalogue, all zero at first.
///
/// Passed in, never global: a loader owns one and lends it to its parts.
/// Threads: any.
class Metrics {
 public:
  /// In the place of a value: it cannot be told here, and is left out.
  static constexpr std::int64_t kUnknown =
      std::numeric_limits<std::int64_t>::min();

  void add(Metric metric, std::int64_t delta) {
    at(metric).fetch_add(delta, std::memory_order_relaxed);
  }
  std::int64_t value(Metric metric) const {
    return at(metric).load(std::memory_order_relaxed);
  }

  /// For metrics that follow from other numbers. REQUIRES: nobody calls add()
  /// on it.
  void set(Metric metric, std::int64_t value) {
    at(metric).store(value, std::memory_order_relaxed);
  }
  /// Adds what `other` has counted, which begins at zero again. Gauges stay.
  void take_counters(Metrics& other);

  /// Those that are known in Prometheus's text format, version 0.0.4.
  std::string exposition() const;

 private:
  using Values = std::array<std::atomic<std::int64_t>,
                            static_cast<std::size_t>(Metric::kCount)>;
  std::atomic<std::int64_t>& at(Metric metric) {
    return values_[static_cast<std::size_t>(metric)];
  }
  const std::atomic<std::int64_t>& at(Metric metric) const {
    return values_[static_cast<std::size_t>(metric)];
  }

  Values values_{};
};

}  // namespace leat
