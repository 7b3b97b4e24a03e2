#include "leat/runtime/log.h"

#include <pthread.h>
#include <pybind11/pybind11.h>

#include <atomic>
#include <deque>
#include <iterator>
#include <string>
#include <utility>

#include "bindings.h"
#include "leat/base/mutex.h"
#include "log.h"

namespace py = pybind11;

namespace leat {
namespace {

/// Lines that wait for Python are bounded: in a flood the first are enough.
constexpr std::size_t kMostLines = 1000;

struct Line {
  LogLevel level;
  std::string message;
};

struct Waiting {
  Mutex mutex;
  std::deque<Line> lines LEAT_GUARDED_BY(mutex);
  std::atomic<bool> is_any = false;
};

/// Never destroyed: threads may log until the process is gone.
Waiting& waiting() {
  static auto* const lines = new Waiting;
  return *lines;
}

void keep(LogLevel level, std::string_view message) {
  Waiting& all = waiting();
  const MutexLock lock(all.mutex);
  if (all.lines.size() >= kMostLines) return;
  all.lines.push_back({level, std::string(message)});
  all.is_any = true;
}

std::deque<Line> take() {
  Waiting& all = waiting();
  if (!all.is_any) return {};
  const MutexLock lock(all.mutex);
  all.is_any = false;
  return std::exchange(all.lines, {});
}

/// The next delivery begins with these.
void give_back(std::deque<Line> lines) {
  if (lines.empty()) return;
  Waiting& all = waiting();
  const MutexLock lock(all.mutex);
  all.lines.insert(all.lines.begin(), std::make_move_iterator(lines.begin()),
                   std::make_move_iterator(lines.end()));
  all.is_any = true;
}

/// As `logging` numbers them.
int number_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return 10;
    case LogLevel::kInfo:
      return 20;
    case LogLevel::kWarning:
      break;
  }
  return 30;
}

/// From now on lines go to stderr: at the end of the interpreter, and in a
/// forked child, whose lock may have been held by a thread that does not exist
/// there.
void stop_routing() { set_log_sink(nullptr); }

}  // namespace

void deliver_log() {
  std::deque<Line> lines = take();
  while (!lines.empty()) {
    const Line line = std::move(lines.front());
    lines.pop_front();
    try {
      // Bytes of keys need not be UTF-8.
      const auto text = py::reinterpret_steal<py::object>(PyUnicode_DecodeUTF8(
          line.message.data(), static_cast<py::ssize_t>(line.message.size()),
          "replace"));
      py::module_::import("leat._log")
          .attr("logger")
          .attr("log")(number_of(line.level), "%s", text);
    } catch (py::error_already_set& error) {
      if (!error.matches(PyExc_Exception)) {  // Such as Ctrl-C.
        give_back(std::move(lines));
        throw;
      }
      error.discard_as_unraisable("leat._log");
    }
  }
}

void bind_log(py::module_& module) {
  module.def("log_info", [](const std::string& message) {
    log_info(message);
    deliver_log();
  });
  module.def("deliver_log", &deliver_log);
  module.def("route_log",
             [](bool is_routed) { set_log_sink(is_routed ? &keep : nullptr); });
  static const int registered =
      ::pthread_atfork(nullptr, nullptr, &stop_routing);
  (void)registered;
}

}  // namespace leat
