// The address of an AWS service, or of its replacement.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "leat/base/env.h"
#include "leat/store/cloud/endpoint.h"
#include "leat/store/s3/aws/aws_profile.h"

namespace leat {

/// The endpoint of `service` ("s3", "sts") set by the environment or the
/// profile; nullopt for AWS's own. AWS_ENDPOINT_URL_<SERVICE> goes first, then
/// AWS_ENDPOINT_URL, the profile's `services`, its `endpoint_url`.
std::optional<ConfiguredEndpoint> configured_endpoint(std::string_view service,
                                                      const AwsProfile& profile,
                                                      const Env& env);

/// AWS's own: `https://<service>.<region>.amazonaws.com`.
Endpoint aws_endpoint(std::string_view service, std::string_view region);

/// AWS_REGION, AWS_DEFAULT_REGION, the profile's `region`; nullopt if
/// unset.
std::optional<std::string> find_region(const AwsProfile& profile,
                                       const Env& env);

/// The region that a request is signed for if none is given.
inline constexpr std::string_view kDefaultRegion = "us-east-1";

/// True if it may become part of a host name: letters, digits, '-', '_'.
bool is_region(std::string_view text);

}  // namespace leat
