// The role of an ECS task or an EKS pod, from the endpoint in its environment.
#pragma once
#include <memory>

#include "leat/store/cloud/provider.h"

namespace leat {

/// AWS_CONTAINER_CREDENTIALS_RELATIVE_URI (ECS) or _FULL_URI (EKS Pod Identity
/// and others), with AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE, read anew each
/// time, or AWS_CONTAINER_AUTHORIZATION_TOKEN.
///
/// A full URI is asked over https, or at an address that only this machine can
/// reach: loopback, 169.254.170.2, 169.254.170.23, fd00:ec2::23. Anything else
/// would send the token across a network in the clear.
std::unique_ptr<CredentialProvider> container_role(CredentialTools tools);

}  // namespace leat
