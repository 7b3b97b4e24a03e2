#include "leat/metrics/metrics.h"

#include <fmt/format.h>

namespace leat {

std::string Metrics::exposition() const {
  std::string text;
  for (std::size_t i = 0; i < kCatalog.size(); ++i) {
    const MetricSpec& spec = kCatalog[i];
    text += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{0} {3}\n", spec.name,
                        spec.help,
                        spec.kind == MetricKind::kCounter ? "counter" : "gauge",
                        values_[i].load(std::memory_order_relaxed));
  }
  return text;
}

}  // namespace leat
