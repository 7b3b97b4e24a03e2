// The places that credentials come from: their interface, and what every place
// needs.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "leat/base/clock.h"
#include "leat/base/env.h"
#include "leat/base/result.h"
#include "leat/store/cloud/credentials.h"
#include "leat/store/http/http_client.h"

namespace leat {

/// Credentials, and until when they are good.
struct TimedCredentials {
  Credentials keys;
  std::optional<TimePoint> expires_at{};  ///< nullopt: they do not say.
};

/// The answer of a place that is asked for credentials.
struct CredentialAnswer {
  std::optional<TimedCredentials> found{};
  /// If nothing is found: the reason, as half a sentence. "AWS_PROFILE is not
  /// set".
  std::string why_not{};

  static CredentialAnswer none(std::string why) {
    return {std::nullopt, std::move(why)};
  }
};

/// A place that may have credentials. Places are asked in turn (see chain.h).
///
/// No output of a provider but `found` holds a secret: neither names nor
/// reasons nor errors, for any answer of the other side.
///
/// Threads:  one at a time.
/// Lifetime: shared by all that may ask again.
class CredentialProvider {
 public:
  virtual ~CredentialProvider() = default;

  /// The name for messages: "AWS_ACCESS_KEY_ID in the environment".
  virtual std::string name() const = 0;

  /// True if fetch() asks nobody but memory and files, now.
  virtual bool is_local() const = 0;

  /// Credentials that are good from now on. Blocks, but for no longer than a
  /// bound of its own, or until `stop` fires.
  ///
  /// Errors:
  ///   kPermissionDenied  the place is set up wrongly, or refuses
  ///   kInvalidArgument   what the user wrote is not valid
  ///   kUnavailable, kThrottled, kDeadlineExceeded   it may answer later
  ///   kCancelled         `stop` fired first
  virtual Result<CredentialAnswer> fetch(std::stop_token stop) = 0;
};

/// The world outside as providers see it; tests bring their own.
struct CredentialTools {
  using WallNow = std::function<std::chrono::system_clock::time_point()>;
  using OpenHttp =
      std::function<std::unique_ptr<HttpClient>(const HttpClientOptions&)>;

  Env env;
  WallNow now = &std::chrono::system_clock::now;
  std::shared_ptr<const Clock> clock = std::make_shared<SteadyClock>();
  /// Opened for each fetch and closed again: fetches are hours apart.
  OpenHttp open_http = [](const HttpClientOptions& options) {
    return open_http_client(options, nullptr);
  };
  std::string ca_bundle{};  ///< For https; empty for the system's.
  /// For `credential_process` and helpers.
  Nanoseconds process_timeout = std::chrono::seconds(60);
};

}  // namespace leat
