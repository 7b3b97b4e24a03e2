// How to reach a bucket and as whom: what the user said, the environment, the
// profile files and the defaults, put together by AWS's rules.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "leat/base/env.h"
#include "leat/base/result.h"
#include "leat/store/s3/sigv4.h"

namespace leat {

/// Where the bucket's name stands.
enum class Addressing : std::uint8_t {
  kAuto,         ///< By the rules in README.md.
  kPath,         ///< https://host/bucket/key
  kVirtualHost,  ///< https://bucket.host/key
};

/// What the user said. Whatever is empty is looked up in the environment, then
/// in the profile files.
struct S3Options {
  std::string endpoint_url;  ///< http://… or https://…; a path is kept.
  std::string region;
  std::string profile;
  bool no_sign_request = false;  ///< Ask as nobody: for public buckets.
  Addressing addressing = Addressing::kAuto;
  std::string ca_bundle;           ///< A PEM file; empty for the system's.
  std::uint32_t max_attempts = 0;  ///< 0: AWS_MAX_ATTEMPTS, else 10.
};

/// What holds in the end.
struct S3Settings {
  /// Scheme, host and path in front of keys, without a slash at the end:
  /// "https://ds.s3.eu-west-1.amazonaws.com", "http://localhost:9000/ds".
  std::string base_url;
  std::string host;       ///< As in the Host header, with a port that is not
                          ///< the scheme's own.
  std::string base_path;  ///< "" or "/ds", encoded.
  std::string region;
  std::optional<AwsCredentials> credentials;  ///< None: do not sign.
  std::string ca_bundle;
  std::uint32_t max_attempts = 10;

  bool is_tls() const { return base_url.starts_with("https:"); }
};

/// Errors:
///   kInvalidArgument   a bucket, endpoint, region or number that cannot be; a
///                      profile that is not there; a file that is no INI
///   kPermissionDenied  no credentials, and `no_sign_request` is not set
Result<S3Settings> resolve_s3_settings(std::string_view bucket,
                                       const S3Options& options,
                                       const Env& env);

}  // namespace leat
