#include "leat/cli/emulated_step.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace leat {

void emulate_step(Nanoseconds step_time, const std::stop_token& stop) {
  const TimePoint end = SteadyClock().now() + step_time;
  while (!stop.stop_requested() && SteadyClock().now() < end) {
    std::this_thread::sleep_for(std::min<Nanoseconds>(
        end - SteadyClock().now(), std::chrono::milliseconds(50)));
  }
}

}  // namespace leat
