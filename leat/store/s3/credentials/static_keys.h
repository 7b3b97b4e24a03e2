// Keys that are written down: in the environment, in a profile.
#pragma once
#include <memory>
#include <optional>
#include <string_view>

#include "leat/base/env.h"
#include "leat/base/result.h"
#include "leat/store/cloud/provider.h"
#include "leat/store/s3/aws/aws_profile.h"

namespace leat {

/// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN.
std::unique_ptr<CredentialProvider> environment_keys(Env env);

/// aws_access_key_id, aws_secret_access_key, aws_session_token of a profile;
/// nullopt if it has neither of the first two.
///
/// Errors:
///   kPermissionDenied  one of the two is missing; as check_keys()
Result<std::optional<Credentials>> keys_of(const AwsProfile& profile);

/// Errors:
///   kPermissionDenied  they hold a blank, a line break or what is not ASCII,
///                      and so cannot go into a header. `where` is named, never
///                      the value.
Result<void> check_keys(const Credentials& keys, std::string_view where);

}  // namespace leat
