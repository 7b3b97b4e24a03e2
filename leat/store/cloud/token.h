// Bearer tokens of OAuth 2.0 services (RFC 6749, RFC 8693).
#pragma once
#include <chrono>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "leat/base/result.h"
#include "leat/store/cloud/provider.h"
#include "leat/store/cloud/uri.h"
#include "leat/store/http/http_client.h"

namespace leat {

/// Text that no message may show.
using Secrets = std::span<const std::string_view>;

/// Errors:
///   kInvalidArgument  `url` is no https URL, nor an http one at a loopback
///                     address: `where` would send secrets in the clear
Result<void> check_token_url(std::string_view url, std::string_view where);

/// The text of a member of a JSON object, or of a member of that, as in
/// "credential_source.file"; empty if there is none.
std::string text_in_json(std::string_view json, std::string_view path);

/// `code: message` of a JSON refusal, as " (invalid_grant: …)", with `secrets`
/// hidden; empty if it has none.
std::string token_refusal(std::string_view body, Secrets secrets);

/// A token that is good for `lifetime` from now on.
///
/// Errors:
///   kPermissionDenied  it cannot go into a header
Result<TimedCredentials> token_of(std::string token,
                                  std::chrono::seconds lifetime,
                                  const CredentialTools& tools);

/// Reads `access_token` and `expires_in`. `asked` names the service.
///
/// Errors (which hold neither `secrets` nor the token):
///   kPermissionDenied  it refuses, or its answer is not a token
///   kThrottled, kUnavailable  HTTP 429, 5xx
Result<TimedCredentials> token_from_reply(const HttpReply& reply,
                                          std::string_view asked,
                                          Secrets secrets,
                                          const CredentialTools& tools);

/// Posts a form. Blocks: at most three times 10 s.
Result<HttpReply> post_form(std::string url, const QueryPairs& form,
                            const CredentialTools& tools,
                            const std::stop_token& stop);

}  // namespace leat
