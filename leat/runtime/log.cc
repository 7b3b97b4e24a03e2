#include "leat/runtime/log.h"

#include <spdlog/cfg/env.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

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

}  // namespace

void log_warning(std::string_view message) { logger()->warn(message); }

void log_info(std::string_view message) { logger()->info(message); }

void log_debug(std::string_view message) { logger()->debug(message); }

}  // namespace leat
