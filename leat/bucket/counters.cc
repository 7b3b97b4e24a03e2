#include "leat/bucket/counters.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace leat {
namespace {

double ms(Nanoseconds duration) { return double(duration.count()) * 1e-6; }

}  // namespace

std::string_view to_string(RequestKind kind) {
  switch (kind) {
    case RequestKind::kGet:
      return "GET";
    case RequestKind::kList:
      return "LIST";
    case RequestKind::kHead:
      return "HEAD";
    case RequestKind::kPut:
      return "PUT";
    case RequestKind::kDelete:
      return "DELETE";
    case RequestKind::kOther:
    case RequestKind::kCount:
      break;
  }
  return "POST";
}

// A duration of e powers of two and s of 64 steps above falls into bucket
// 64 e + s: its six bits below the highest.
void DurationHistogram::add(Nanoseconds duration) {
  const auto ns =
      std::uint64_t(std::max<Nanoseconds::rep>(duration.count(), 1));
  const int power = std::bit_width(ns) - 1;
  const std::uint64_t step = power >= 6 ? (ns >> (power - 6)) & (kSteps - 1)
                                        : (ns << (6 - power)) & (kSteps - 1);
  ++counts_[std::size_t(power) * kSteps + std::size_t(step)];
  ++total_;
  max_ = std::max(max_, duration);
}

Nanoseconds DurationHistogram::quantile(double q) const {
  if (total_ == 0) return Nanoseconds(0);
  const auto wanted = std::uint64_t(std::ceil(q * double(total_)));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen < wanted || seen == 0) continue;
    const double steps = 1.0 + double(i % kSteps + 1) / kSteps;
    const double upper = std::ldexp(steps, int(i / kSteps));
    return std::min(max_, Nanoseconds(Nanoseconds::rep(upper)));
  }
  return max_;
}

void BucketCounters::begin(RequestKind kind) {
  MutexLock lock(mutex_);
  ++counts_.requests[std::size_t(kind)];
  counts_.most_in_flight = std::max(counts_.most_in_flight, ++in_flight_);
}

void BucketCounters::fault() {
  MutexLock lock(mutex_);
  ++counts_.faults;
}

void BucketCounters::served(std::uint64_t object, std::uint64_t bytes) {
  MutexLock lock(mutex_);
  counts_.bytes += bytes;
  if (counts_.served.size() < most_remembered_) {
    if (!counts_.served.insert(object).second) ++counts_.repeated;
  } else if (counts_.served.contains(object)) {
    ++counts_.repeated;
  } else {
    ++counts_.not_remembered;
  }
}

void BucketCounters::cut(std::uint64_t bytes) {
  MutexLock lock(mutex_);
  counts_.bytes += bytes;
}

void BucketCounters::lateness(Nanoseconds late) {
  MutexLock lock(mutex_);
  counts_.lateness.add(late);
}

void BucketCounters::end() {
  MutexLock lock(mutex_);
  --in_flight_;
}

void BucketCounters::reset() {
  MutexLock lock(mutex_);
  counts_ = Counts();
  counts_.most_in_flight = in_flight_;
}

std::string BucketCounters::json(Connections connections) const {
  MutexLock lock(mutex_);
  const auto of = [this](RequestKind kind) LEAT_NO_THREAD_SAFETY_ANALYSIS {
    return counts_.requests[std::size_t(kind)];
  };
  return fmt::format(
      R"({{"get": {}, "list": {}, "head": {}, "put": {}, "delete": {}, )"
      R"("other": {}, "bytes": {}, "repeated_keys": {}, )"
      R"("keys_not_remembered": {}, "faults": {}, )"
      R"("in_flight": {}, "most_in_flight": {}, "connections": {}, )"
      R"("connections_accepted": {}, )"
      R"("lateness_ms": {{"p50": {:.4f}, "p95": {:.4f}, "max": {:.4f}}}}})",
      of(RequestKind::kGet), of(RequestKind::kList), of(RequestKind::kHead),
      of(RequestKind::kPut), of(RequestKind::kDelete), of(RequestKind::kOther),
      counts_.bytes, counts_.repeated, counts_.not_remembered, counts_.faults,
      in_flight_, counts_.most_in_flight, connections.open,
      connections.accepted, ms(counts_.lateness.quantile(0.5)),
      ms(counts_.lateness.quantile(0.95)), ms(counts_.lateness.max()));
}

}  // namespace leat
