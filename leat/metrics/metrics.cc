#include "leat/metrics/metrics.h"

#include <fmt/format.h>

namespace leat {

void Metrics::take_counters(Metrics& other) {
  for (std::size_t i = 0; i < kCatalog.size(); ++i) {
    if (kCatalog[i].kind != MetricKind::kCounter) continue;
    values_[i].fetch_add(other.values_[i].exchange(0));
  }
}

std::string Metrics::exposition() const {
  std::string text;
  for (std::size_t i = 0; i < kCatalog.size(); ++i) {
    const MetricSpec& spec = kCatalog[i];
    const std::int64_t value = values_[i].load(std::memory_order_relaxed);
    if (value == kUnknown) continue;
    text += fmt::format(
        "# HELP {0} {1}\n# TYPE {0} {2}\n{0} {3}\n", spec.name, spec.help,
        spec.kind == MetricKind::kCounter ? "counter" : "gauge", value);
  }
  return text;
}

}  // namespace leat
