#include "leat/runtime/log.h"

#include <spdlog/cfg/env.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <memory>

namespace leat {
namespace {

// spdlog's own registry keeps it; a program that made a logger of this name
// before decides where our lines go.
std::shared_ptr<spdlog::logger> logger() {
  static const std::shared_ptr<spdlog::logger> made = [] {
    std::shared_ptr<spdlog::logger> found = spdlog::get("leat");
    if (found == nullptr) {
      found = spdlog::stderr_color_mt("leat");
      found->set_pattern("%n: %l: %v");
      spdlog::cfg::load_env_levels();
    }
    return found;
  }();
  return made;
}

std::atomic<LogSink> elsewhere = nullptr;

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      break;
  }
  return spdlog::level::warn;
}

void log(LogLevel level, std::string_view message) {
  const std::shared_ptr<spdlog::logger> to = logger();
  if (!to->should_log(level_of(level))) return;
  if (const LogSink sink = elsewhere.load()) return sink(level, message);
  to->log(level_of(level), message);
}

}  // namespace

void log_warning(std::string_view message) { log(LogLevel::kWarning, message); }

void log_info(std::string_view message) { log(LogLevel::kInfo, message); }

void log_debug(std::string_view message) { log(LogLevel::kDebug, message); }

void set_log_sink(LogSink sink) { elsewhere = sink; }

}  // namespace leat
