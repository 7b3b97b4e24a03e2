// The signed statement by which a service account asks for a token (RFC 7523).
#pragma once
#include <chrono>
#include <string>
#include <string_view>

#include "leat/base/result.h"
#include "leat/store/gcs/google_file.h"

namespace leat {

/// "I, `account`, ask for `scope`", signed with RS256, good for an hour from
/// `now` on.
///
/// Errors (which hold nothing of the key):
///   kPermissionDenied  the private key is no RSA key in PEM
Result<std::string> signed_jwt(const ServiceAccount& account,
                               std::string_view scope,
                               std::chrono::sys_seconds now);

}  // namespace leat
