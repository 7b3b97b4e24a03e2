// Where AWS credentials come from.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "leat/base/env.h"
#include "leat/base/result.h"
#include "leat/store/s3/aws_profile.h"
#include "leat/store/s3/sigv4.h"

namespace leat {

/// One place where credentials may be. Sources are asked in turn; the first
/// that has any wins, and one that has half of them is an error.
struct CredentialsSource {
  std::string name;  ///< What to call it in "tried …".
  /// Nullopt: nothing here, ask the next. May block.
  std::function<Result<std::optional<AwsCredentials>>()> find;
};

/// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN.
CredentialsSource environment_credentials(Env env);

/// aws_access_key_id, aws_secret_access_key, aws_session_token of a profile.
///
/// `profile` is borrowed and must outlive the source.
CredentialsSource profile_credentials(const AwsProfile& profile);

/// Asks the sources in turn.
///
/// Errors:
///   kPermissionDenied  none has any (the message lists what was tried), one
///                      has half, or they hold blanks or line breaks
Result<AwsCredentials> find_credentials(
    std::span<const CredentialsSource> sources);

}  // namespace leat
