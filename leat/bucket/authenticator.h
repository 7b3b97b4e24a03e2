// Decides which clients may ask.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leat/bucket/s3_error.h"
#include "leat/serve/http_service.h"
#include "leat/store/s3/aws/sigv4_verify.h"

namespace leat {

/// Credentials of somebody, and when they end.
struct TemporaryCredentials {
  Credentials keys;
  WallTime expires_at;
};

/// The clients that are let in and, for tests, those whose credentials have
/// expired.
struct AccessOptions {
  /// If set, every request must be signed with it; a session token in it must
  /// come with the request. If not, no signature is checked.
  std::optional<Credentials> credentials;
  /// A session token that is answered with ExpiredToken.
  std::string expired_token;
  /// Host names, besides "localhost" and addresses, that requests without a
  /// signature may use.
  std::vector<std::string> names;
  /// If set, it is asked instead of the two above for the owner of this access
  /// key id. Expired credentials are answered with ExpiredToken. Called by many
  /// threads at once.
  std::function<std::optional<TemporaryCredentials>(std::string_view id)>
      find_temporary;
};

/// Threads: any.
class Authenticator {
 public:
  explicit Authenticator(AccessOptions options)
      : options_(std::move(options)) {}

  struct Admission {
    std::optional<S3Error> refusal;
    /// The hash of the body that the client signed; empty if it signed none.
    std::string payload_hash;
  };
  Admission admit(const RequestHead& head, WallTime now) const;

  /// Refuses what a web page of another place has its visitor's browser send:
  /// another Origin; and, where no signature is needed, a Host that is a
  /// stranger's name.
  std::optional<S3Error> check_page(const RequestHead& head) const;

 private:
  Admission admit_temporary(const RequestHead& head, WallTime now) const;
  std::optional<S3Error> check_token(const RequestHead& head) const;

  const AccessOptions options_;
};

}  // namespace leat
