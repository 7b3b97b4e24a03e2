#include "leat/store/s3/aws/aws_profile.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "leat/base/errors.h"
#include "leat/store/cloud/small_file.h"

namespace leat {
namespace {

constexpr std::size_t kMostFileBytes = 1 << 20;

struct NamedFile {
  std::string path;
  IniFile sections;
  std::string outcome;  ///< Empty if it was read.
};

Result<std::optional<std::string>> read_profile_file(const std::string& path) {
  auto text = read_small_file(path, kMostFileBytes);
  if (text) return text;
  return invalid(text.error().message() +
                 "; correct it, or name another file with AWS_CONFIG_FILE or "
                 "AWS_SHARED_CREDENTIALS_FILE");
}

std::string path_of(const Env& env, std::string_view variable,
                    std::string_view name) {
  const std::string home = value_of(env, "HOME").value_or("");
  if (const auto path = value_of(env, variable)) {
    return path->starts_with("~/") ? home + path->substr(1) : *path;
  }
  return home.empty() ? std::string() : fmt::format("{}/.aws/{}", home, name);
}

Result<NamedFile> load(std::string path) {
  if (path.empty()) return NamedFile{"~/.aws", {}, "HOME is not set"};
  LEAT_TRY(const std::optional<std::string> text, read_profile_file(path));
  if (!text) return NamedFile{std::move(path), {}, "no such file"};
  LEAT_TRY(IniFile sections, parse_ini(*text, path));
  return NamedFile{std::move(path), std::move(sections), ""};
}

/// Lets the values of `file` under `section` replace those that are there
/// already.
bool merge(const NamedFile& file, const std::string& section,
           IniSection& into) {
  const auto found = file.sections.find(section);
  if (found == file.sections.end()) return false;
  for (const auto& [name, value] : found->second) into[name] = value;
  return true;
}

std::string describe(const NamedFile& file, bool has_profile) {
  if (!file.outcome.empty()) {
    return fmt::format("{} ({})", file.path, file.outcome);
  }
  return has_profile ? file.path
                     : fmt::format("{} (no such profile)", file.path);
}

}  // namespace

std::optional<std::string> AwsProfile::value(std::string_view wanted) const {
  const auto found = values.find(wanted);
  if (found == values.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

Result<AwsProfile> load_aws_profile(std::string_view explicit_name,
                                    const Env& env) {
  LEAT_TRY(const NamedFile config,
           load(path_of(env, "AWS_CONFIG_FILE", "config")));
  LEAT_TRY(const NamedFile credentials,
           load(path_of(env, "AWS_SHARED_CREDENTIALS_FILE", "credentials")));

  std::optional<std::string> asked;
  if (!explicit_name.empty()) asked = explicit_name;
  if (!asked) asked = value_of(env, "AWS_PROFILE");
  if (!asked) asked = value_of(env, "AWS_DEFAULT_PROFILE");

  AwsProfile profile;
  profile.name = asked.value_or("default");
  bool in_config =
      profile.name == "default" && merge(config, "default", profile.values);
  in_config |= merge(config, "profile " + profile.name, profile.values);
  const bool in_credentials = merge(credentials, profile.name, profile.values);
  profile.looked_in =
      fmt::format("{} and {}", describe(credentials, in_credentials),
                  describe(config, in_config));
  if (asked && !in_config && !in_credentials && profile.name != "default") {
    return invalid(
        "there is no AWS profile '{}' in {}; correct the name (--profile, "
        "AWS_PROFILE) or add the profile",
        profile.name, profile.looked_in);
  }
  if (const auto services = profile.value("services")) {
    merge(config, "services " + *services, profile.services);
  }
  return profile;
}

}  // namespace leat
