#include "leat/store/http/http_client.h"

#include <curl/curl.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "leat/base/env.h"
#include "leat/base/errors.h"
#include "leat/store/http/ca_bundle.h"
#include "leat/store/http/http_url.h"
#include "leat/store/http/io_thread.h"
#include "leat/store/http/resolver.h"
#include "leat/store/reply_box.h"

namespace leat {
namespace {

bool names_a_proxy(const Env& env) {
  return std::ranges::any_of(
      std::initializer_list<const char*>{
          "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"},
      [&env](const char* name) {
        const auto value = env(name);
        return value && !value->empty();
      });
}

class IoThreadsClient final : public HttpClient {
 public:
  explicit IoThreadsClient(const TransferSettings& settings)
      : owner_pid_(getpid()), resolver_(std::make_unique<Resolver>()) {
    const std::size_t threads =
        std::max<std::size_t>(1, settings.options.io_threads);
    for (std::size_t i = 0; i < threads; ++i) {
      threads_.push_back(std::make_unique<IoThread>(settings, *resolver_));
      is_usable_ = is_usable_ && threads_.back()->is_usable();
    }
  }

  ~IoThreadsClient() override {
    if (getpid() == owner_pid_) return;
    // In a forked child the threads do not exist, and their locks are held for
    // ever: leave it all alone.
    for (auto& thread : threads_) (void)thread.release();
    (void)resolver_.release();
  }

  void send(HttpRequest request, std::stop_token stop, HttpDone done) override {
    if (getpid() != owner_pid_) {
      return done(invalid(
          "{} {}: the client was opened in process {} and cannot be used in "
          "{}, forked from it; open one after the fork",
          request.method, url_for_people(request.url), owner_pid_, getpid()));
    }
    if (!is_usable_) {
      return done(
          exhausted("no file descriptors were left to open an HTTP client; "
                    "raise the limit (ulimit -n)"));
    }
    Submission submission{.request = std::move(request),
                          .stop = std::move(stop),
                          .done = std::move(done)};
    if (!next_thread().submit(submission)) {
      submission.done(Error(ErrorCode::kCancelled,
                            "cancelled, since the client is closed"));
    }
  }

 private:
  /// The first thread that is not busy: one thread wakes less often than two
  /// for the same replies. If all are busy, the one with the fewest requests.
  IoThread& next_thread() {
    for (const auto& thread : threads_) {
      if (!thread->is_busy()) return *thread;
    }
    return **std::ranges::min_element(
        threads_, {}, [](const auto& thread) { return thread->load(); });
  }

  const pid_t owner_pid_;
  bool is_usable_ = true;  // Constant after construction.
  std::unique_ptr<Resolver> resolver_;
  std::vector<std::unique_ptr<IoThread>> threads_;  // Die before the resolver.
};

}  // namespace

ReplyHeaders::ReplyHeaders(
    std::initializer_list<std::pair<std::string_view, std::string_view>> all) {
  for (const auto& [name, value] : all) add(name, value);
}

void ReplyHeaders::add(std::string_view name, std::string_view value) {
  if (lines_.empty()) lines_.reserve(512);
  const std::size_t begin = lines_.size();
  lines_.append(name).append(1, ':').append(value).append(1, '\n');
  for (char& c : std::span(lines_).subspan(begin, name.size())) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
}

std::string_view ReplyHeaders::find(std::string_view name) const {
  std::string_view left = lines_;
  while (!left.empty()) {
    const std::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(line.size() + 1);
    if (line.size() > name.size() && line[name.size()] == ':' &&
        line.starts_with(name)) {
      return line.substr(name.size() + 1);
    }
  }
  return {};
}

Result<HttpReply> HttpClient::send_and_wait(HttpRequest request,
                                            std::stop_token stop) {
  ReplyBox<Result<HttpReply>> reply;
  send(std::move(request), std::move(stop),
       [&reply](Result<HttpReply> result) { reply.put(std::move(result)); });
  return reply.take();
}

std::unique_ptr<HttpClient> open_http_client(const HttpClientOptions& options,
                                             Metrics* metrics) {
  static std::once_flag started;
  std::call_once(started, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  const Env env = process_env();
  return std::make_unique<IoThreadsClient>(TransferSettings{
      .options = options,
      .ca_bundle = find_ca_bundle(options.ca_bundle, env),
      .uses_proxy = options.may_use_proxy && names_a_proxy(env),
      .metrics = metrics});
}

}  // namespace leat
