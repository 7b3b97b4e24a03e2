// `leat bucket` as a library.
#pragma once
#include <memory>
#include <string>

#include "leat/base/result.h"
#include "leat/bucket/bucket_service.h"
#include "leat/serve/http_server.h"

namespace leat {

struct BucketOptions {
  std::string folder;
  std::string repeat;  ///< As Repeat::parse() reads it; empty: nothing.
  HttpServerOptions http;
  AccessOptions access;
  Behaviour behaviour;
};

/// An S3-compatible server over a folder.
///
/// Threads:  any.
/// Lifetime: destruction ends the server as HttpServer does.
class BucketServer {
 public:
  virtual ~BucketServer() = default;

  /// "http://127.0.0.1:9000", https with TLS.
  virtual std::string url() const = 0;
  /// As GET /_leat/counters answers.
  virtual std::string counters_json() const = 0;
};

/// Errors:
///   kNotFound, kInvalidArgument  it is not a folder; as open_http_server()
///   kUnavailable                 as open_http_server()
Result<std::unique_ptr<BucketServer>> open_bucket_server(BucketOptions options);

}  // namespace leat
