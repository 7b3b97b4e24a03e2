// Requests that say who asks, with credentials that are good.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>

#include "leat/store/cloud/refreshing.h"
#include "leat/store/http/http_client.h"

namespace leat {

/// A reply, and whether the server refused who asked.
struct AuthorizedReply {
  HttpReply http;
  /// The credentials were refused (HTTP 401), and newer ones are there or are
  /// being fetched: the same request may succeed now.
  bool has_newer = false;
  /// As Authorize returned it for the request; 0 if nobody was named.
  std::chrono::seconds clock_offset{0};
};

/// An HTTP client whose requests carry credentials. A request waits for them if
/// none are good, without a thread of its own.
///
/// Threads, Lifetime: as HttpClient.
class AuthorizedHttp {
 public:
  /// Adds what says who asks, on any thread. Returns how far the time that it
  /// wrote down was ahead of our clock: what is learnt of the server's time
  /// while the request is under way does not change it.
  using Authorize =
      std::function<std::chrono::seconds(const Credentials&, HttpRequest&)>;
  using Done = std::function<void(Result<AuthorizedReply>)>;

  /// `credentials` may be null: requests are sent as they are.
  AuthorizedHttp(std::unique_ptr<RefreshingCredentials> credentials,
                 Authorize authorize, std::unique_ptr<HttpClient> http)
      : credentials_(std::move(credentials)),
        authorize_(std::move(authorize)),
        http_(std::move(http)) {}

  /// Errors: as HttpClient::send() and CredentialProvider::fetch().
  void send(HttpRequest request, std::stop_token stop, Done done);
  Result<AuthorizedReply> send_and_wait(HttpRequest request,
                                        std::stop_token stop);

  bool has_credentials() const { return credentials_ != nullptr; }

 private:
  void send_as(CredentialsRef who, HttpRequest request, std::stop_token stop,
               Done done);

  const std::unique_ptr<RefreshingCredentials> credentials_;
  const Authorize authorize_;
  const std::unique_ptr<HttpClient> http_;  // Last: its callbacks use the rest.
};

/// "Authorization: Bearer …": the Authorize of services with OAuth 2.0. It
/// writes no time down, and so returns 0.
std::chrono::seconds send_bearer_token(const Credentials& who,
                                       HttpRequest& request);

}  // namespace leat
