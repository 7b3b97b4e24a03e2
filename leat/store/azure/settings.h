// The way to a container of Azure Blob Storage and the identity to use: the
// user's options and the environment, put together by Azure's rules.
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

/// The place that a URL names.
struct AzurePlace {
  std::string container;
  std::string
      host;  ///< ACCOUNT.dfs.core.windows.net; empty: the environment's.
};

/// The user's options. Empty ones are looked up in the environment.
struct AzureOptions {
  std::string endpoint_url;      ///< http://… or https://…; a path is kept.
  bool no_sign_request = false;  ///< Ask as nobody: for public containers.
  std::string ca_bundle;         ///< A PEM file; empty for the system's.
};

/// The settings that hold in the end.
struct AzureSettings {
  Endpoint endpoint;
  /// An account's key (`access_key_id`, `secret_access_key`), or a SAS
  /// (`session_token`): known without asking anybody.
  std::optional<Credentials> credentials;
  /// The source of tokens. Null and no `credentials`: ask as nobody.
  std::shared_ptr<CredentialProvider> provider;
  /// See node_turn.h; empty for no turns.
  std::string turn_path;
  std::string ca_bundle;
};

/// Reads environment and files. Asks nobody else: tokens come from `provider`
/// before the first request. `tools` is where they are asked for.
///
/// Errors (which hold neither keys nor the SAS):
///   kInvalidArgument   a container, endpoint, key or connection string that
///                      cannot be; no account; a key of another account than
///                      the URL's; a URL's host outside Azure's domains that
///                      neither `options` nor the environment names
Result<AzureSettings> resolve_azure_settings(const AzurePlace& place,
                                             const AzureOptions& options,
                                             const CredentialTools& tools);

}  // namespace leat
