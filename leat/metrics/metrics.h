// The values of the metrics of one process or loader.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "leat/metrics/catalog.h"

namespace leat {

/// One number for every row of the catalogue, all zero at first.
///
/// Passed in, never global: a loader owns one and lends it to its parts.
/// Threads: any.
class Metrics {
 public:
  void add(Metric metric, std::int64_t delta) {
    at(metric).fetch_add(delta, std::memory_order_relaxed);
  }
  std::int64_t value(Metric metric) const {
    return at(metric).load(std::memory_order_relaxed);
  }

  /// All of them in Prometheus's text format, version 0.0.4.
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
