// S3 as an HttpService.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "leat/bucket/authenticator.h"
#include "leat/bucket/bucket_parts.h"
#include "leat/bucket/counters.h"
#include "leat/bucket/fault.h"
#include "leat/bucket/latency.h"
#include "leat/bucket/request_limit.h"
#include "leat/runtime/executor.h"
#include "leat/serve/http_server.h"
#include "leat/serve/http_service.h"

namespace leat {

/// How a bucket misbehaves.
struct Behaviour {
  Latency latency;
  std::vector<FaultRate> faults;
  std::vector<FaultLine> fault_script;
  std::uint64_t seed = 0;
  /// The most GETs a second; further ones get SlowDown. 0: no limit.
  std::uint64_t most_gets_per_second = 0;
  /// The wait that each 429 and 503 asks for (Retry-After); 0: they ask for
  /// none.
  std::uint32_t retry_after_seconds = 0;
  /// Sends the CRC64NVME of a whole object to clients that ask for it. The
  /// first such read of an object reads it twice.
  bool gives_checksums = false;
};

/// Answers S3's requests from a folder, slowly and with faults as asked, and
/// counts them. /_leat/counters and /_leat/counters/reset are its own.
///
/// GETs, HEADs and PUTs are answered on the connection's thread; slower
/// operations (listings, copies, joining parts, bulk deletes) on one of ours.
///
/// Threads:  any.
/// Lifetime: outlives the server that calls it.
class BucketService final : public HttpService {
 public:
  BucketService(Folder folder, AccessOptions access, Behaviour behaviour);

  std::unique_ptr<Exchange> begin(const RequestHead& head) override;

  /// Makes /_leat/counters tell of the connections of `server`, which outlives
  /// its own requests.
  void watch(const HttpServer& server) { server_ = &server; }
  std::string counters_json() const;

  // For exchanges.
  BucketParts& parts() { return parts_; }
  BucketCounters& counters() { return counters_; }
  FaultInjector& faults() { return faults_; }
  RequestLimit& gets() { return gets_; }
  const Authenticator& authenticator() const { return authenticator_; }
  Nanoseconds next_delay();
  std::uint32_t retry_after_seconds() const { return retry_after_seconds_; }
  void run_elsewhere(std::function<void()> task);

 private:
  BucketParts parts_;
  const Authenticator authenticator_;
  const Latency latency_;
  const std::uint64_t seed_;
  FaultInjector faults_;
  RequestLimit gets_;
  const std::uint32_t retry_after_seconds_;
  BucketCounters counters_;
  std::atomic<std::uint64_t> delays_ = 0;
  std::atomic<const HttpServer*> server_ = nullptr;
  Executor worker_;  // Last: its tasks use the rest.
};

}  // namespace leat
