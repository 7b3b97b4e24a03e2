// Checking Signature Version 4 as a server does: in the Authorization header or
// in the query of a presigned URL.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/store/s3/aws/sigv4.h"

namespace leat {

/// A request as it came in. Lent.
struct ReceivedRequest {
  using Header = std::pair<std::string_view, std::string_view>;
  std::string_view method;
  std::string_view target;          ///< Path and query, as on the request line.
  std::span<const Header> headers;  ///< Names in any case and order.
};

enum class SignatureVerdict : std::uint8_t {
  kValid,
  kAnonymous,    ///< Not signed at all; whether that will do is the server's.
  kMalformed,    ///< Signed in a way that cannot be read.
  kUnknownKey,   ///< Nobody has this access key id.
  kMismatch,     ///< The signature is of another request, secret or region.
  kExpired,      ///< A presigned URL past its time.
  kSkewed,       ///< The clocks are more than 15 minutes apart.
  kWrongRegion,  ///< Signed for another region; `region` is the signed one.
};

/// The verdict as the `Code` of S3's error and as the HTTP status. REQUIRES:
/// neither kValid nor kAnonymous.
std::string_view s3_error_code(SignatureVerdict verdict);
int s3_error_status(SignatureVerdict verdict);

struct CheckedSignature {
  SignatureVerdict verdict = SignatureVerdict::kAnonymous;
  std::string access_key_id;
  std::string region;
  /// The signed hash of the body: hex SHA-256 (compare it with the body's),
  /// UNSIGNED-PAYLOAD, or STREAMING-… for a body in signed chunks.
  std::string payload_hash;
  /// One sentence for the error's `Message`; never holds secrets.
  std::string reason;
};

/// The credentials of an access key id; nullopt if nobody has it.
using FindCredentials =
    std::function<std::optional<Credentials>(std::string_view id)>;

struct VerifyOptions {
  /// If not empty, a signature for another region is kWrongRegion.
  std::string region;
  std::chrono::seconds most_skew{15 * 60};
};

/// Checks the signature of `request` at the time `now`.
///
/// `request` is hostile: anything is answered with a verdict. Compares in
/// constant time.
CheckedSignature verify_signature(const ReceivedRequest& request,
                                  const FindCredentials& find_credentials,
                                  WallTime now,
                                  const VerifyOptions& options = {});

/// True if equal; takes the same time for any difference.
bool equal_in_constant_time(std::string_view a, std::string_view b);

/// The names and values of a raw query, decoded, in its order.
QueryPairs parse_query(std::string_view query);

}  // namespace leat
