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

/// The value of a variable; nullopt if it is not set or empty.
std::optional<std::string> value_of(const Env& env, std::string_view name);

/// The folder for files that Leat can make again: LEAT_CACHE_DIR, else
/// XDG_CACHE_HOME/leat, else HOME/.cache/leat. Nullopt if none of them is set.
std::optional<std::string> user_cache_folder(const Env& env);

/// The variables of a map, for tests.
Env fake_env(std::map<std::string, std::string, std::less<>> variables);

}  // namespace leat
