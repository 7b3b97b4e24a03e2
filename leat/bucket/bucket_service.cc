#include "leat/bucket/bucket_service.h"

#include <utility>

#include "leat/bucket/s3_exchange.h"

namespace leat {
namespace {

constexpr std::size_t kMostOpen = 512;
/// The bound for all folders together; at 40 bytes a name, 160 MB.
constexpr std::size_t kMostNames = 4'000'000;
constexpr std::string_view kOwnPath = "/_leat/";

/// /_leat/…: neither delayed, nor counted, nor signed.
class OwnExchange final : public Exchange {
 public:
  OwnExchange(BucketService& service, const RequestHead& head)
      : service_(service), head_(head) {}

  void on_request(SendReply send) override {
    Reply reply = answer();
    reply.is_shaped = false;
    send(std::move(reply));
  }

 private:
  Reply answer() {
    if (const auto refusal = service_.authenticator().check_page(head_)) {
      return error_reply(*refusal, head_.target);
    }
    const bool is_counters = head_.target == "/_leat/counters";
    const bool is_reset = head_.target == "/_leat/counters/reset";
    if (!is_counters && !is_reset) {
      return error_reply(s3_error(S3Code::kNoSuchKey), head_.target);
    }
    if (head_.method != (is_counters ? "GET" : "POST")) {
      return error_reply(s3_error(S3Code::kMethodNotAllowed), head_.target);
    }
    Reply reply;
    if (is_reset) {
      service_.counters().reset();
      reply.status = 204;
      return reply;
    }
    reply.headers = "Content-Type: application/json\r\n";
    reply.body = service_.counters_json() + "\n";
    return reply;
  }

  BucketService& service_;
  const RequestHead& head_;
};

}  // namespace

BucketService::BucketService(Folder folder, AccessOptions access,
                             Behaviour behaviour)
    : parts_(std::move(folder), kMostOpen, kMostNames,
             behaviour.gives_checksums),
      authenticator_(std::move(access)),
      latency_(behaviour.latency),
      seed_(behaviour.seed),
      faults_(behaviour.seed, std::move(behaviour.faults),
              std::move(behaviour.fault_script)),
      gets_(behaviour.most_gets_per_second),
      retry_after_seconds_(behaviour.retry_after_seconds),
      worker_("leat-bkt-work", 1) {}

std::unique_ptr<Exchange> BucketService::begin(const RequestHead& head) {
  if (head.target.starts_with(kOwnPath)) {
    return std::make_unique<OwnExchange>(*this, head);
  }
  return std::make_unique<S3Exchange>(*this, head);
}

std::string BucketService::counters_json() const {
  BucketCounters::Connections connections;
  if (const HttpServer* server = server_) {
    connections = {.open = server->open_connections(),
                   .accepted = server->accepted_connections()};
  }
  return counters_.json(connections);
}

Nanoseconds BucketService::next_delay() {
  return latency_.draw(seed_, delays_.fetch_add(1, std::memory_order_relaxed));
}

void BucketService::run_elsewhere(std::function<void()> task) {
  worker_.submit(0, [task = std::move(task)](std::size_t) { task(); });
}

}  // namespace leat
