// The JSON files that hold Google's credentials.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "leat/base/result.h"

namespace leat {

/// A service account's key (`service_account`): it signs what it asks with.
struct ServiceAccount {
  std::string client_email;
  std::string private_key_id;
  std::string private_key;  ///< PEM.
  std::string token_uri;
};

/// The login of `gcloud auth application-default login` (`authorized_user`).
struct AuthorizedUser {
  std::string client_id;
  std::string client_secret;
  std::string refresh_token;
  std::string token_uri;
};

/// Workload identity federation (`external_account`): a token of another
/// issuer is exchanged for one of Google's.
struct ExternalAccount {
  std::string audience;
  std::string subject_token_type;
  std::string token_url;
  std::string file;  ///< The source of the other token; or `url`.
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;  ///< For `url`.
  std::string token_field;        ///< Empty: the source gives the token alone.
  std::string impersonation_url;  ///< Empty: as the federated identity itself.
};

struct GoogleFile {
  std::variant<ServiceAccount, AuthorizedUser, ExternalAccount> who;
  std::string project;  ///< Its quota or own project; may be empty.
};

/// Errors (which hold no value of the file but its type):
///   kPermissionDenied  no JSON, an unknown type, a member that is missing
///   kInvalidArgument   a URL that would get secrets in the clear
Result<GoogleFile> parse_google_file(std::string_view text);

}  // namespace leat
