// Turns "this key of that bucket" into a signed HTTP request.
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
#include "leat/store/cloud/refreshing.h"
#include "leat/store/http/http_client.h"
#include "leat/store/s3/aws/sigv4.h"
#include "leat/store/s3/settings.h"

namespace leat {

/// Makes the requests for one bucket.
///
/// Signs as little as S3 requires (host and x-amz-*), since a proxy can break
/// every further header. Learns how far this machine's clock is off and which
/// region the bucket is in.
///
/// Threads: any.
class RequestMaker {
 public:
  using SettingsRef = std::shared_ptr<const S3Settings>;

  struct Wanted {
    std::string_view method = "GET";
    std::string_view key;  ///< Empty for the bucket itself.
    QueryPairs query;
    std::vector<std::string> headers;  ///< Additional ones, sent unsigned.
    std::span<const std::byte> body;   ///< Signed. Borrowed until the reply.
    /// The reply's headers are to have that of the object.
    bool wants_checksum = false;
  };

  /// The credentials and settings of a request. They may prove wrong before its
  /// reply comes.
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

  /// `who` signs; null: nobody.
  Made make(Wanted wanted, CredentialsRef who) const;

  /// Treats the server's time as correct from now on. False if the request was
  /// already signed with that time, so that a retry cannot help.
  bool adopt_server_time(const MadeWith& with, WallTime server);

  /// Uses `region` from now on, once. False if the request already went there,
  /// or the region was changed before, or it is not a valid region.
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
  // The signer of the last request, and the credentials it was made from.
  mutable SignerRef signer_ LEAT_GUARDED_BY(mutex_);
  mutable MadeWith signer_from_ LEAT_GUARDED_BY(mutex_);
};

}  // namespace leat
