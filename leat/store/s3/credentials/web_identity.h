// A role by a token of an identity provider: EKS service accounts and others.
#pragma once
#include <memory>
#include <string>

#include "leat/store/cloud/provider.h"
#include "leat/store/s3/credentials/sts.h"

namespace leat {

/// Exchanges the token in `token_file`, read anew each time, for credentials.
///
/// Errors: as assume_role; kInvalidArgument if the file is not there, is empty
/// or has more than 20,000 bytes
Result<TimedCredentials> exchange_web_identity(const std::string& token_file,
                                               const RoleRequest& role,
                                               const StsPlace& sts,
                                               const CredentialTools& tools,
                                               const std::stop_token& stop);

/// AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN, AWS_ROLE_SESSION_NAME.
std::unique_ptr<CredentialProvider> environment_web_identity(
    Result<StsPlace> sts, CredentialTools tools);

}  // namespace leat
