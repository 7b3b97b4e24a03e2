// A key and a certificate for a server on this machine.
#pragma once
#include <string>

#include "leat/base/result.h"

namespace leat {

/// The identity of a server. Never printed: `key_pem` is a secret.
struct TlsIdentity {
  std::string certificate_pem;
  std::string key_pem;
};

/// Makes a new P-256 key and a certificate that it signs itself, good for a
/// month for `localhost`, 127.0.0.1, ::1 and `host`. A client that trusts the
/// certificate can verify the server.
///
/// Errors:
///   kInternal  OpenSSL failed
Result<TlsIdentity> make_self_signed_identity(const std::string& host);

}  // namespace leat
