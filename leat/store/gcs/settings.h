// The way to a bucket of Google Cloud Storage and the identity to use: the
// user's options and the environment, put together by Google's rules.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "leat/base/env.h"
#include "leat/base/result.h"
#include "leat/store/cloud/credentials.h"
#include "leat/store/cloud/endpoint.h"
#include "leat/store/cloud/provider.h"

namespace leat {

/// The user's options. Empty ones are looked up in the environment.
struct GcsOptions {
  std::string endpoint_url;      ///< http://… or https://…; a path is kept.
  bool no_sign_request = false;  ///< Ask as nobody: for public buckets.
  /// The caller's project pays for the requests and bytes.
  bool requester_pays = false;
  std::string ca_bundle;  ///< A PEM file; empty for the system's.
};

/// The settings that hold in the end.
struct GcsSettings {
  Endpoint endpoint;
  /// The keys of S3's protocol, which take the place of tokens.
  std::optional<Credentials> hmac_keys;
  /// The source of tokens. Null and no `hmac_keys`: ask as nobody.
  std::shared_ptr<CredentialProvider> provider;
  /// See node_turn.h; empty for no turns.
  std::string turn_path;
  std::string user_project;  ///< Empty: the bucket's owner pays.
  std::string ca_bundle;
};

/// Reads environment and files. Asks nobody else: tokens come from `provider`
/// before the first request. `tools` is where they are asked for.
///
/// Errors:
///   kInvalidArgument   an invalid bucket or endpoint; `requester_pays`
///                      without a project; half a pair of keys
///   kPermissionDenied  a file of credentials that is missing or holds none
Result<GcsSettings> resolve_gcs_settings(std::string_view bucket,
                                         const GcsOptions& options,
                                         const CredentialTools& tools);

}  // namespace leat
