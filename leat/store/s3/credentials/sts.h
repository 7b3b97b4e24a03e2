// AWS's Security Token Service: temporary credentials for those that may assume
// a role.
#pragma once
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "leat/base/result.h"
#include "leat/store/cloud/provider.h"
#include "leat/store/s3/aws/aws_profile.h"
#include "leat/store/s3/aws/endpoint.h"

namespace leat {

/// The endpoint of STS, and the scope that requests to it are signed for.
struct StsPlace {
  Endpoint endpoint;
  std::string region;
};

/// AWS_ENDPOINT_URL_STS and what configured_endpoint() says; else AWS's own of
/// the region, or the global one where AWS_STS_REGIONAL_ENDPOINTS (or
/// `sts_regional_endpoints`) is `legacy` and the region is one of the old.
/// `region` is what the user said; empty for environment and profile.
///
/// Errors:
///   kInvalidArgument  an invalid endpoint or region
Result<StsPlace> sts_place(std::string_view region, const AwsProfile& profile,
                           const Env& env);

/// The role that is asked for.
struct RoleRequest {
  std::string role_arn;
  std::string session_name;  ///< Empty for one of ours.
  std::string external_id;
  std::optional<std::uint32_t> duration_seconds;  ///< nullopt: STS says.
};

/// AssumeRole, signed with `source`. Blocks, at most 10 s a try.
///
/// Errors (which hold neither `source` nor what STS gave):
///   kPermissionDenied  STS refuses
///   kThrottled, kUnavailable, kDeadlineExceeded, kCancelled
Result<TimedCredentials> assume_role(const RoleRequest& role,
                                     const Credentials& source,
                                     const StsPlace& sts,
                                     const CredentialTools& tools,
                                     const std::stop_token& stop);

/// AssumeRoleWithWebIdentity, which is not signed. Errors: as assume_role
Result<TimedCredentials> assume_role_with_web_identity(
    const RoleRequest& role, std::string_view token, const StsPlace& sts,
    const CredentialTools& tools, const std::stop_token& stop);

/// `duration_seconds` as profiles write it; nullopt for what STS says.
///
/// Errors:
///   kInvalidArgument  no number within 900 and 43,200
Result<std::optional<std::uint32_t>> parse_duration_seconds(
    const std::optional<std::string>& text);

}  // namespace leat
