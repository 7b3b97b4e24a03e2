// The way to a bucket and the identity to use: the user's options, the
// environment, the profile files and the defaults, put together by AWS's rules.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "leat/base/env.h"
#include "leat/base/result.h"
#include "leat/store/s3/aws/sigv4.h"

namespace leat {

class CredentialChain;
class CredentialProvider;

/// The place of the bucket's name in a URL.
enum class Addressing : std::uint8_t {
  kAuto,         ///< By the rules in README.md.
  kPath,         ///< https://host/bucket/key
  kVirtualHost,  ///< https://bucket.host/key
};

/// The user's options. Empty ones are looked up in the environment, then in the
/// profile files.
struct S3Options {
  std::string endpoint_url;  ///< http://… or https://…; a path is kept.
  std::string region;
  std::string profile;
  bool no_sign_request = false;  ///< Ask as nobody: for public buckets.
  Addressing addressing = Addressing::kAuto;
  std::string ca_bundle;           ///< A PEM file; empty for the system's.
  std::uint32_t max_attempts = 0;  ///< 0: AWS_MAX_ATTEMPTS.
  /// The caller pays for the requests and bytes, not the bucket's owner.
  bool requester_pays = false;
  /// See ProfileLinkOptions::helper.
  std::string credential_helper;
};

/// The settings that hold in the end.
struct S3Settings {
  /// Scheme, host and path in front of keys, without a slash at the end:
  /// "https://ds.s3.eu-west-1.amazonaws.com", "http://localhost:9000/ds".
  std::string base_url;
  std::string host;       ///< As in the Host header, with a port that is not
                          ///< the scheme's own.
  std::string base_path;  ///< "" or "/ds", encoded.
  std::string region;
  /// Known without asking anybody. None and no `provider`: do not sign.
  std::optional<Credentials> credentials;
  /// The source of credentials, which can be asked for newer ones.
  std::shared_ptr<CredentialProvider> provider;
  /// See node_turn.h; empty for no turns.
  std::string turn_path;
  bool requester_pays = false;
  std::string ca_bundle;
  std::uint32_t max_attempts = 0;  ///< 0: not said.
  // For services that also speak S3's protocol, and have a scheme of their own:
  std::string_view scheme = "s3";
  /// The remedy for a refusal; empty: that of AWS's users.
  std::string_view keys_remedy{};
  /// Google's project that pays; empty: the bucket's owner does.
  std::string user_project;
  /// A header of each GET and HEAD of an object, sent unsigned; empty: none.
  std::string_view object_header{};

  bool is_tls() const { return base_url.starts_with("https:"); }
  bool is_signed() const { return credentials || provider; }
};

/// Reads environment and files. Asks nobody else: credentials that take more
/// than that come from `provider` before the first request.
///
/// Errors:
///   kInvalidArgument   an invalid bucket, endpoint, region or number; a
///                      profile that is not there; a file that is no INI
///   kPermissionDenied  no credentials, nobody to ask, and `no_sign_request` is
///                      not set
Result<S3Settings> resolve_s3_settings(std::string_view bucket,
                                       const S3Options& options,
                                       const Env& env);

/// The chain that resolve_s3_settings() takes credentials from.
///
/// Errors: as load_aws_profile()
Result<std::unique_ptr<CredentialChain>> open_credential_chain(
    const S3Options& options, const Env& env);

/// The same bucket in another region: it changes the region that requests are
/// signed for and, at AWS's own endpoints, the host they go to.
///
/// REQUIRES: is_region(region)
S3Settings moved_to_region(S3Settings settings, std::string_view region);

}  // namespace leat
