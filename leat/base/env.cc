#include "leat/base/env.h"

#include <cstdlib>
#include <utility>

namespace leat {

Env process_env() {
  return [](std::string_view name) -> std::optional<std::string> {
    const char* value = std::getenv(std::string(name).c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
}

std::optional<std::string> value_of(const Env& env, std::string_view name) {
  auto value = env(name);
  if (value && value->empty()) return std::nullopt;
  return value;
}

std::optional<std::string> user_cache_folder(const Env& env) {
  if (auto own = value_of(env, "LEAT_CACHE_DIR")) return own;
  if (auto xdg = value_of(env, "XDG_CACHE_HOME")) return *xdg + "/leat";
  if (auto home = value_of(env, "HOME")) return *home + "/.cache/leat";
  return std::nullopt;
}

Env fake_env(std::map<std::string, std::string, std::less<>> variables) {
  return [variables = std::move(variables)](
             std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

}  // namespace leat
