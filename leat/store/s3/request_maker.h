// From "this key of that bucket" to a signed HTTP request.
#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/mutex.h"
#include "leat/store/http/http_client.h"
#include "leat/store/s3/credentials/refreshing.h"
#include "leat/store/s3/settings.h"
#include "leat/store/s3/sigv4.h"

namespace leat {

/// The time of day, from outside.
using WallNow = std::function<WallTime()>;
WallTime system_now();

/// The credentials that a bucket's requests are signed with; null for anonymous
/// requests.
std::unique_ptr<RefreshingCredentials> open_credentials(
    const S3Settings& settings);

/// Makes the requests for one bucket.
///
/// Signs as little as S3 asks for (host and x-amz-*), since every further
/// header is one that a proxy can break. Knows how far this machine's clock is
/// off and which region the bucket is in, once told.
///
/// Threads: any.
class RequestMaker {
 public:
  using SettingsRef = std::shared_ptr<const S3Settings>;

  struct Wanted {
    std::string_view method = "GET";
    std::string_view key;  ///< Empty for the bucket itself.
    QueryPairs query;
    std::vector<std::string> headers;  ///< Further ones, sent unsigned.
    std::span<const std::byte> body;   ///< Signed. Lent until the reply.
  };

  /// The credentials and settings of a request. They may prove wrong by the
  /// time its reply comes.
  struct MadeWith {
    CredentialsRef who;
    SettingsRef settings;
    std::chrono::seconds clock_offset{0};
  };
  struct Made {
    HttpRequest http;
    MadeWith with;
  };

  RequestMaker(S3Settings settings, WallNow now);

  /// `who` signs; null for nobody.
  Made make(Wanted wanted, CredentialsRef who) const;

  /// Takes the server's time for right from now on. False if the request was
  /// signed with that time already, so that asking again cannot help.
  bool adopt_server_time(const MadeWith& with, WallTime server);

  /// Goes to `region` from now on, once. False if the request went there
  /// already, or there was another move before, or it cannot be a region.
  bool adopt_region(const MadeWith& with, std::string_view region);

  SettingsRef settings() const;

 private:
  using SignerRef = std::shared_ptr<const Signer>;

  SignerRef signer_of(const MadeWith& with) const;
  void sign(const Wanted& wanted, std::string_view path, std::string_view query,
            Made& made) const;

  const WallNow now_;
  std::atomic<std::chrono::seconds::rep> clock_offset_ = 0;

  mutable Mutex mutex_;
  SettingsRef settings_ LEAT_GUARDED_BY(mutex_);
  bool has_moved_ LEAT_GUARDED_BY(mutex_) = false;
  // The signer of the last request, and the credentials that it was made from.
  mutable SignerRef signer_ LEAT_GUARDED_BY(mutex_);
  mutable MadeWith signer_from_ LEAT_GUARDED_BY(mutex_);
};

}  // namespace leat
