#include "leat/store/cloud/ask.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "leat/base/mutex.h"
#include "leat/base/units.h"

namespace leat {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

HttpClientOptions options_for(const CredentialTools& tools, Nanoseconds timeout,
                              Proxy proxy) {
  HttpClientOptions options;
  options.io_threads = 1;
  options.max_in_flight = 1;
  options.connect_timeout =
      std::max(std::chrono::ceil<milliseconds>(timeout), milliseconds(1));
  options.stall_timeout =
      std::max(std::chrono::ceil<seconds>(timeout), seconds(1));
  options.ca_bundle = tools.ca_bundle;
  options.may_use_proxy = proxy == Proxy::kFromEnvironment;
  return options;
}

/// A reply that comes, or does not come in time.
class Awaited {
 public:
  void put(Result<HttpReply> reply) {
    const MutexLock lock(mutex_);
    reply_.emplace(std::move(reply));
    arrived_.notify_one();
  }
  bool wait(Nanoseconds timeout) {
    MutexLock lock(mutex_);
    return arrived_.wait_for(
        lock, timeout,
        [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS { return reply_.has_value(); });
  }
  Result<HttpReply> take() {
    MutexLock lock(mutex_);
    while (!reply_) arrived_.wait(lock);
    return *std::move(reply_);
  }

 private:
  Mutex mutex_;
  CondVar arrived_;
  std::optional<Result<HttpReply>> reply_ LEAT_GUARDED_BY(mutex_);
};

void pause(const std::stop_token& stop) {
  Mutex mutex;
  CondVar stopped;
  MutexLock lock(mutex);
  stopped.wait_for(lock, stop, milliseconds(250), [] { return false; });
}

bool may_pass(const Result<HttpReply>& reply) {
  if (!reply) return retryable(reply.error().code());
  return reply->status == 429 || reply->status >= 500;
}

}  // namespace

Result<HttpReply> ask(const CredentialTools& tools, HttpRequest request,
                      Nanoseconds timeout, Proxy proxy,
                      const std::stop_token& stop) {
  request.most_body_bytes = kMostReplyBytes;
  Awaited awaited;
  std::stop_source ended;
  const auto http = tools.open_http(options_for(tools, timeout, proxy));
  const std::stop_callback on_stop(stop, [&ended] { ended.request_stop(); });
  http->send(
      std::move(request), ended.get_token(),
      [&awaited](Result<HttpReply> reply) { awaited.put(std::move(reply)); });
  const bool is_in_time = awaited.wait(timeout);
  if (!is_in_time) ended.request_stop();
  Result<HttpReply> reply = awaited.take();
  if (!reply && !is_in_time && !stop.stop_requested()) {
    return Error(ErrorCode::kDeadlineExceeded,
                 "no answer within " + format_duration(timeout));
  }
  return reply;
}

Result<HttpReply> ask_repeatedly(const CredentialTools& tools,
                                 const HttpRequest& request,
                                 Nanoseconds timeout, Proxy proxy, int attempts,
                                 const std::stop_token& stop) {
  for (int attempt = 1;; ++attempt) {
    Result<HttpReply> reply = ask(tools, request, timeout, proxy, stop);
    if (attempt >= attempts || !may_pass(reply) || stop.stop_requested()) {
      return reply;
    }
    pause(stop);
  }
}

bool is_header_word(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c > ' ' && c < '\x7f'; });
}

ErrorCode code_of_status(int status) {
  if (status == 429) return ErrorCode::kThrottled;
  if (status >= 500 || status == 408) return ErrorCode::kUnavailable;
  return ErrorCode::kPermissionDenied;
}

}  // namespace leat
