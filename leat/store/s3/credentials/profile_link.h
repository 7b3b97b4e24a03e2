// The identity that a profile describes: keys, a role, a process, SSO.
#pragma once
#include <memory>
#include <string>

#include "leat/store/cloud/provider.h"
#include "leat/store/s3/aws/aws_profile.h"

namespace leat {

struct ProfileLinkOptions {
  /// As the user named it; empty for AWS_PROFILE and its default.
  std::string profile;
  /// The region that STS requests are signed for; empty for environment and
  /// profile.
  std::string region;
  /// A command that prints credentials as a credential_process does, given
  /// `--profile NAME`: for SSO and MFA, which need more than we do. Empty for
  /// LEAT_CREDENTIAL_HELPER.
  std::string helper;
};

/// The profile that `options` and the environment name, read anew each time, so
/// that changes of the files are seen.
///
/// A role (`role_arn`) is assumed with the credentials of `source_profile`,
/// which may itself be a role, or of `credential_source`; or with
/// `web_identity_token_file`. Else the profile's own keys, its
/// `credential_process`, or SSO through the helper.
///
/// `now` is what the profile says now.
std::unique_ptr<CredentialProvider> profile_link(ProfileLinkOptions options,
                                                 const AwsProfile& now,
                                                 CredentialTools tools);

}  // namespace leat
