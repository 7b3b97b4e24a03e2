#include "leat/tune/sharing_job.h"

#include <algorithm>
#include <cmath>

namespace leat {
namespace {

// A node may go beyond another's offer by this factor: figures differ by that
// from report to report.
constexpr double kAhead = 1.05;

}  // namespace

Grant SharingJob::within_ask(Grant given) const {
  given.threads = std::min(given.threads, std::max(1.0, ask.most_threads));
  given.in_flight =
      std::min(given.in_flight, std::max(1.0, ask.most_in_flight));
  return given;
}

double SharingJob::outside() const {
  return elsewhere ? kAhead * elsewhere->offered : kUnbounded;
}

/// Every job that shares its cache tells the size.
CacheRoom SharingJob::room() const {
  const auto count = static_cast<double>(sharers);
  return {.ram_bytes = ask.cache.ram_bytes / count,
          .disk_bytes = ask.cache.disk_bytes / count};
}

JobSpeed SharingJob::speed() const {
  const double ceiling = elsewhere ? elsewhere->ceiling : 0;
  if (!is_cache_dealt) return fit.speed_as_it_hits(ceiling);
  JobSpeed speed = fit.speed(ceiling);
  // With equal parts, a part that one job fills answers each as if it were that
  // many times as large.
  speed.dataset_bytes /= static_cast<double>(sharers);
  return speed;
}

Prediction SharingJob::predict_with(const Grant& with) const {
  return predict(speed(), within_ask(with));
}

std::optional<Pace> SharingJob::pace() const {
  if (!fit.is_known()) return std::nullopt;
  const double reached = predict_with(grant).rate;
  return Pace{.offered = std::max(offered, reached),
              .reached = reached,
              .ceiling = fit.speed().compute_ceiling};
}

double SharingJob::predicted_rate() const {
  if (!fit.is_known()) return 0;
  // A cache that fills is not yet what it will be.
  const JobSpeed speed =
      fit.speed_as_it_hits(elsewhere ? elsewhere->ceiling : 0);
  const double rate = std::min(predict(speed, within_ask(grant)).rate,
                               elsewhere ? elsewhere->reached : kUnbounded);
  return std::isfinite(rate) ? rate : 0;
}

}  // namespace leat
