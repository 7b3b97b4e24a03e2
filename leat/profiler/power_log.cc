#include "leat/profiler/power_log.h"

#include <algorithm>
#include <chrono>
#include <iterator>

#include "leat/runtime/thread_name.h"

namespace leat {
namespace {

using std::chrono_literals::operator""ms;

constexpr auto kBetweenReadings = 100ms;

/// A reading takes a while itself: it is taken to be of the middle of that.
void add_reading(std::vector<EnergyReading>& readings, auto& meter) {
  const TimePoint before = SteadyClock().now();
  const std::optional<double> joules = meter.joules();
  if (!joules) return;
  const TimePoint after = SteadyClock().now();
  readings.push_back({before + (after - before) / 2, *joules});
}

/// The counter at `at`, which lies within the readings.
double joules_at(std::span<const EnergyReading> readings, TimePoint at) {
  const auto next =
      std::ranges::upper_bound(readings, at, {}, &EnergyReading::at);
  if (next == readings.end()) return readings.back().joules;
  const EnergyReading& last = *std::prev(next);
  const std::chrono::duration<double> whole = next->at - last.at;
  const std::chrono::duration<double> part = at - last.at;
  return last.joules + (next->joules - last.joules) * (part / whole);
}

}  // namespace

std::optional<double> mean_watts(std::span<const EnergyReading> readings,
                                 TimePoint begin, TimePoint end) {
  if (readings.empty() || end <= begin || begin < readings.front().at ||
      end > readings.back().at) {
    return std::nullopt;
  }
  const double joules = joules_at(readings, end) - joules_at(readings, begin);
  return joules / std::chrono::duration<double>(end - begin).count();
}

PowerLog::PowerLog() {
  read();
  if (of_processors_.empty() && of_accelerators_.empty()) return;
  reader_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

PowerLog::~PowerLog() = default;

void PowerLog::run(const std::stop_token& stop) {
  name_this_thread("leat-power");
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, stop, kBetweenReadings,
                            [&] { return stop.stop_requested(); })) {
    read();
  }
}

void PowerLog::read() {
  add_reading(of_processors_, processors_);
  add_reading(of_accelerators_, accelerators_);
}

Watts PowerLog::stop_and_tell(TimePoint begin, TimePoint end) {
  if (reader_.joinable()) {
    reader_.request_stop();
    reader_.join();
  }
  read();
  return {.processors = mean_watts(of_processors_, begin, end),
          .accelerators = mean_watts(of_accelerators_, begin, end)};
}

}  // namespace leat
