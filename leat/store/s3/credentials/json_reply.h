// Credentials as JSON: the answers of processes, containers and instances.
#pragma once
#include <span>
#include <string_view>

#include "leat/base/result.h"
#include "leat/store/cloud/provider.h"

namespace leat {

/// The form that the JSON is expected to have.
struct JsonForm {
  std::string_view token_name = "Token";
  bool needs_expiration = true;
  bool needs_version_1 = false;
};

/// Reads AccessKeyId, SecretAccessKey, a token and Expiration. `date` is the
/// Date header that came with them, or empty.
///
/// Errors (which never quote `text`, but for `Code` and `Message` of a refusal,
/// with `secrets` hidden):
///   kPermissionDenied  no JSON, a name is missing, a value that cannot go into
///                      a header, a refusal
Result<TimedCredentials> parse_json_credentials(
    std::string_view text, const JsonForm& form, std::string_view date,
    std::span<const std::string_view> secrets, const CredentialTools& tools);

/// `code` and `message` of a JSON refusal as " (code: message)", with `secrets`
/// hidden; empty if it has none.
std::string json_refusal(std::string_view text,
                         std::span<const std::string_view> secrets);

}  // namespace leat
