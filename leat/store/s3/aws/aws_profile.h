// The profile files that AWS's tools share: ~/.aws/config and credentials.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "leat/base/env.h"
#include "leat/base/result.h"
#include "leat/store/s3/aws/ini_file.h"

namespace leat {

/// The values of both files for one profile.
struct AwsProfile {
  std::string name = "default";
  /// The files that were tried and the results, for messages.
  std::string looked_in;
  /// The credentials file wins if both set a value.
  IniSection values;
  /// The section that the profile's `services` names.
  IniSection services;

  /// The value of `name`; nullopt if it is absent or empty.
  std::optional<std::string> value(std::string_view name) const;
};

/// Reads a profile: `explicit_name`, or AWS_PROFILE, AWS_DEFAULT_PROFILE or
/// `default`, from the files named by AWS_CONFIG_FILE and
/// AWS_SHARED_CREDENTIALS_FILE, or ~/.aws/config and ~/.aws/credentials. Blocks
/// on the disk.
///
/// Errors:
///   kInvalidArgument  a file that is no INI, is larger than 1 MiB or cannot be
///                     read; a profile asked for by name that is in neither
Result<AwsProfile> load_aws_profile(std::string_view explicit_name,
                                    const Env& env);

}  // namespace leat
