#include "leat/cache/read_flights.h"

#include <algorithm>
#include <utility>

#include "leat/base/check.h"

namespace leat {

const ReadHint& latest_hint(const std::vector<AwaitedRead>& reads) {
  const auto now_of = [](const AwaitedRead& read) {
    return read.request.hint->now;
  };
  return *std::ranges::max_element(reads, {}, now_of)->request.hint;
}

ReadFlights::~ReadFlights() {
  const MutexLock lock(mutex_);
  LEAT_CHECK(flights_.empty());
}

bool ReadFlights::begin(const ReadFlightRef& flight) {
  const MutexLock lock(mutex_);
  const auto [found, is_new] = flights_.try_emplace(flight->key, flight);
  if (!is_new) found->second->joined.push_back(std::move(flight->read));
  return is_new;
}

std::optional<ReadHint> ReadFlights::latest_joined(
    const ReadFlight& flight) const {
  const MutexLock lock(mutex_);
  if (flight.joined.empty()) return std::nullopt;
  return latest_hint(flight.joined);
}

std::vector<AwaitedRead> ReadFlights::end(ReadFlight& flight) {
  std::vector<AwaitedRead> joined;
  const MutexLock lock(mutex_);
  flights_.erase(flight.key);
  joined.swap(flight.joined);
  return joined;
}

}  // namespace leat
