// The process's environment, from outside, so that tests bring their own.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace leat {

/// Looks up an environment variable; nullopt if it is not set.
using Env = std::function<std::optional<std::string>(std::string_view name)>;

/// The variables of this process.
Env process_env();

/// The variables of a map, for tests.
Env fake_env(std::map<std::string, std::string, std::less<>> variables);

}  // namespace leat
