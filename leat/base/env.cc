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

Env fake_env(std::map<std::string, std::string, std::less<>> variables) {
  return [variables = std::move(variables)](
             std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

}  // namespace leat
