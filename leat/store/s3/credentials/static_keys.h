// Keys that are written down: in the environment, in a profile.
#pragma once
#include <memory>
#include <optional>
#include <string_view>

#include "leat/base/env.h"
#include "leat/base/result.h"
#include "leat/store/s3/aws/aws_profile.h"
#include "leat/store/s3/credentials/provider.h"

namespace leat {

/// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN.
std::unique_ptr<CredentialProvider> environment_keys(Env env);

/// aws_access_key_id, aws_secret_access_key, aws_session_token of a profile;
/// nullopt if it has neither of the first two.
///
/// Errors:
///   kPermissionDenied  one of the two is missing; as check_keys()
Result<std::optional<AwsCredentials>> keys_of(const AwsProfile& profile);

/// Errors:
///   kPermissionDenied  they hold a blank, a line break or what is not ASCII,
///                      and so cannot go into a header. `where` is named, never
///                      the value.
Result<void> check_keys(const AwsCredentials& keys, std::string_view where);

/// True if `text` may go into a header: ASCII, no blanks, no control
/// characters.
bool is_header_word(std::string_view text);

}  // namespace leat
