// From "this key of that bucket" to a signed HTTP request.
#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leat/store/http/http_client.h"
#include "leat/store/s3/settings.h"
#include "leat/store/s3/sigv4.h"

namespace leat {

/// The time of day, from outside.
using WallNow = std::function<WallTime()>;
WallTime system_now();

/// Makes the requests for one bucket.
///
/// Signs as little as S3 asks for (host and x-amz-*), since every further
/// header is one that a proxy can break. Knows how far this machine's clock is
/// off, once told.
///
/// Threads: any.
class RequestMaker {
 public:
  struct Wanted {
    std::string_view method = "GET";
    std::string_view key;  ///< Empty for the bucket itself.
    QueryPairs query;
    std::vector<std::string> headers;  ///< Further ones, sent unsigned.
    std::span<const std::byte> body;   ///< Signed. Lent until the reply.
  };

  RequestMaker(S3Settings settings, WallNow now);

  HttpRequest make(Wanted wanted) const;

  /// Takes the server's time for right from now on. False if that changes
  /// nothing, so that asking again cannot help.
  bool adopt_server_time(WallTime server);

  const S3Settings& settings() const { return settings_; }

 private:
  void sign(const Wanted& wanted, std::string_view path, std::string_view query,
            HttpRequest& request) const;

  const S3Settings settings_;
  const WallNow now_;
  const std::optional<Signer> signer_;
  std::atomic<std::chrono::seconds::rep> clock_offset_ = 0;
};

/// Reads "Fri, 24 May 2013 00:00:00 GMT".
std::optional<WallTime> parse_http_date(std::string_view text);

}  // namespace leat
