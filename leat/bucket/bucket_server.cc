#include "leat/bucket/bucket_server.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <utility>

namespace leat {
namespace {

class Server final : public BucketServer {
 public:
  Server(Folder folder, BucketOptions options)
      : host_(options.http.host),
        scheme_(options.http.tls ? "https" : "http"),
        service_(std::move(folder), std::move(options.access),
                 std::move(options.behaviour)) {}

  Result<void> start(const HttpServerOptions& options) {
    LEAT_TRY(http_, open_http_server(options, service_));
    service_.watch(*http_);
    return {};
  }

  std::string url() const override {
    const bool is_v6 = host_.find(':') != std::string::npos;
    return fmt::format("{}://{}{}{}:{}", scheme_, is_v6 ? "[" : "", host_,
                       is_v6 ? "]" : "", http_->port());
  }
  std::string counters_json() const override {
    return service_.counters_json();
  }

 private:
  const std::string host_;
  const std::string scheme_;
  BucketService service_;
  std::unique_ptr<HttpServer> http_;  // Last: it calls the service.
};

/// A connection and a file each take a descriptor; 1,024 are soon gone.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

Result<std::unique_ptr<BucketServer>> open_bucket_server(
    BucketOptions options) {
  LEAT_TRY(Folder folder, Folder::open(options.folder, options.repeat));
  raise_descriptor_limit();
  const HttpServerOptions http = options.http;
  auto server = std::make_unique<Server>(std::move(folder), std::move(options));
  LEAT_TRY_VOID(server->start(http));
  return std::unique_ptr<BucketServer>(std::move(server));
}

}  // namespace leat
