// The secrets that requests are signed with, or sent with.
#pragma once
#include <string>

namespace leat {

/// Keys to sign with, or a token to send. Never printed: no message, log or
/// state may hold any but the first.
struct Credentials {
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token;  ///< Empty for long-lived keys.
  /// Sent as it is; there are no keys then. Empty: requests are signed.
  std::string bearer_token{};
};

}  // namespace leat
