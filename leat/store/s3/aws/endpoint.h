// The address of an AWS service, or of its replacement.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "leat/base/env.h"
#include "leat/base/result.h"
#include "leat/store/s3/aws/aws_profile.h"

namespace leat {

struct Endpoint {
  std::string scheme;  ///< "http" or "https".
  std::string host;    ///< With the port, unless it is the scheme's own.
  std::string path;    ///< "" or "/…", without a trailing slash.

  std::string url() const { return scheme + "://" + host + path; }
};

/// An endpoint URL and its source, for messages.
struct ConfiguredEndpoint {
  std::string url;
  std::string source;
};

/// The endpoint of `service` ("s3", "sts") set by the environment or the
/// profile; nullopt for AWS's own. AWS_ENDPOINT_URL_<SERVICE> goes first, then
/// AWS_ENDPOINT_URL, the profile's `services`, its `endpoint_url`.
std::optional<ConfiguredEndpoint> configured_endpoint(std::string_view service,
                                                      const AwsProfile& profile,
                                                      const Env& env);

/// Errors:
///   kInvalidArgument  not http or https, no host, a user name or a query in it
///                     (never quoted: what stands before an '@' is a password)
Result<Endpoint> parse_endpoint(const ConfiguredEndpoint& configured);

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

/// True if `text` holds nothing but letters, digits and `others`.
bool consists_of(std::string_view text, std::string_view others);

}  // namespace leat
