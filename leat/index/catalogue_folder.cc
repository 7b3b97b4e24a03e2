#include "leat/index/catalogue_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <mutex>
#include <system_error>

#include "leat/runtime/log.h"
#include "leat/runtime/trust.h"

namespace leat {
namespace {

/// Looks at the nearest part of `folder` that exists: the rest is made in it.
bool can_write(const std::string& folder) {
  std::error_code error;
  std::filesystem::path path = std::filesystem::absolute(folder, error);
  while (!std::filesystem::exists(path, error) && path.has_relative_path()) {
    path = path.parent_path();
  }
  return std::filesystem::is_directory(path, error) &&
         ::faccessat(AT_FDCWD, path.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
}

/// Others may make folders beside it, but must not have made this one.
std::optional<std::string> temporary_folder(const Env& env) {
  const std::string folder = fmt::format(
      "{}/leat-{}", value_of(env, "TMPDIR").value_or("/tmp"), ::geteuid());
  std::error_code error;
  if (std::filesystem::is_symlink(folder, error) || !make_own_folder(folder) ||
      !is_trusted_folder(folder, "a folder for catalogues")) {
    return std::nullopt;
  }
  return folder;
}

void say_once(const std::string& why, const std::string& folder) {
  static std::once_flag said;
  std::call_once(said, [&] {
    log_info(
        fmt::format("{}: catalogues are kept in {}; LEAT_CACHE_DIR names "
                    "another folder",
                    why, folder));
  });
}

}  // namespace

std::optional<std::string> catalogue_folder(const Env& env) {
  const auto usual = user_cache_folder(env);
  const bool is_function =
      value_of(env, "AWS_LAMBDA_FUNCTION_NAME").has_value();
  if (value_of(env, "LEAT_CACHE_DIR")) return usual;
  if (usual ? can_write(*usual) : !is_function) return usual;
  const auto temporary = temporary_folder(env);
  if (!temporary) return usual;
  say_once(usual ? fmt::format("{} cannot be written", *usual)
                 : "this function has no home",
           *temporary);
  return temporary;
}

}  // namespace leat
