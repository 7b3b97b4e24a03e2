#include "leat/agent/view_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "leat/agent/exposition.h"
#include "leat/agent/page_files.h"
#include "leat/agent/view_json.h"
#include "leat/base/text.h"
#include "leat/serve/asked_host.h"
#include "leat/serve/http_server.h"

namespace leat {
namespace {

constexpr std::size_t kMostConnections = 128;
constexpr std::string_view kHeaders =
    "Cache-Control: no-store\r\n"
    "Content-Security-Policy: default-src 'none'; script-src 'self'; "
    "style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n";

Reply reply_of(int status, std::string_view type, std::string body) {
  Reply reply;
  reply.status = status;
  reply.headers = fmt::format("Content-Type: {}\r\n{}", type, kHeaders);
  reply.body = std::move(body);
  return reply;
}

Reply refusal(int status, std::string_view why) {
  return reply_of(status, "text/plain; charset=utf-8",
                  fmt::format("{}\n", why));
}

template <class T>
bool read_number(std::string_view text, T& into) {
  const std::optional<T> number = number_from<T>(text);
  if (number) into = *number;
  return number.has_value();
}

/// Parses the query; nullopt if it has an unknown word. Our words need no
/// percent-encoding.
std::optional<ViewSince> since_of(std::string_view query) {
  ViewSince since;
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    const std::size_t equals = std::min(pair.find('='), pair.size());
    const std::string_view name = pair.substr(0, equals);
    const std::string_view value =
        pair.substr(std::min(equals + 1, pair.size()));
    const bool is_read = name == "points_after"
                             ? read_number(value, since.points_after) &&
                                   std::isfinite(since.points_after)
                             : name == "decisions_after" &&
                                   read_number(value, since.decisions_after);
    if (!is_read) return std::nullopt;
  }
  return since;
}

class ViewService final : public HttpService {
 public:
  ViewService(std::vector<std::string> names, ViewSource view,
              TraceSource trace)
      : names_(std::move(names)),
        view_(std::move(view)),
        trace_(std::move(trace)) {}

  std::unique_ptr<Exchange> begin(const RequestHead& head) override {
    return std::make_unique<ViewExchange>(*this, head);
  }

 private:
  class ViewExchange final : public Exchange {
   public:
    ViewExchange(const ViewService& service, const RequestHead& head)
        : service_(service), head_(head) {}
    bool wants_body() const override { return false; }
    void on_request(SendReply send) override { send(service_.answer(head_)); }

   private:
    const ViewService& service_;
    const RequestHead head_;
  };

  Reply answer(const RequestHead& head) const {
    if (!may_ask_for(head.header("host"), names_)) {
      return refusal(403,
                     "the agent answers to addresses, to localhost and to the "
                     "names it was told, not to this Host");
    }
    if (head.method != "GET" && head.method != "HEAD") {
      Reply reply = refusal(405, "only GET and HEAD: nothing can be set here");
      reply.headers += "Allow: GET, HEAD\r\n";
      return reply;
    }
    const std::string_view path =
        head.target.substr(0, head.target.find_first_of("?#"));
    std::string_view query = head.target.substr(path.size());
    if (!query.empty()) query.remove_prefix(1);
    return answer(path, query);
  }

  Reply answer(std::string_view path, std::string_view query) const {
    if (path == "/api/node") {
      const std::optional<ViewSince> since = since_of(query);
      if (!since) {
        return refusal(400,
                       "/api/node takes points_after=UNIX_TIME and "
                       "decisions_after=NUMBER, numbers both");
      }
      return reply_of(200, "application/json", view_json(view_(), *since));
    }
    if (path == "/api/trace" && trace_) return answer_trace(query);
    if (path == "/metrics") {
      return reply_of(200, "text/plain; version=0.0.4; charset=utf-8",
                      exposition(view_()));
    }
    for (const PageFile& file : page_files()) {
      if (file.path == path)
        return reply_of(200, file.type, std::string(file.body));
    }
    return refusal(404,
                   "nothing here: see /, /api/node, /api/trace and /metrics");
  }

  Reply answer_trace(std::string_view query) const {
    constexpr std::string_view kJob = "job=";
    if (!query.starts_with(kJob)) {
      return refusal(400, "/api/trace takes job=ID, of /api/node's jobs");
    }
    const std::string job(query.substr(kJob.size()));
    const std::optional<JobTrace> trace = trace_(job);
    if (!trace) return refusal(404, "no job has this id: see /api/node");
    return reply_of(200, "application/json", trace_json(job, *trace));
  }

  const std::vector<std::string> names_;
  const ViewSource view_;
  const TraceSource trace_;
};

class HttpViewServer final : public ViewServer {
 public:
  HttpViewServer(const ViewServerOptions& options, ViewSource view,
                 TraceSource trace)
      : host_(options.host),
        service_(options.names, std::move(view), std::move(trace)) {}

  Result<void> open(std::uint16_t port) {
    HttpServerOptions http;
    http.host = host_;
    http.port = port;
    http.thread_name = "leat-view";
    http.most_connections = kMostConnections;
    LEAT_TRY(server_, open_http_server(http, service_));
    return {};
  }

  std::uint16_t port() const override { return server_->port(); }
  std::string url() const override {
    const bool is_v6 = host_.find(':') != std::string::npos;
    return fmt::format("http://{}{}{}:{}", is_v6 ? "[" : "", host_,
                       is_v6 ? "]" : "", port());
  }

 private:
  const std::string host_;
  ViewService service_;
  std::unique_ptr<HttpServer> server_;  // Last: it uses the service.
};

}  // namespace

Result<std::unique_ptr<ViewServer>> open_view_server(
    const ViewServerOptions& options, ViewSource view, TraceSource trace) {
  auto server = std::make_unique<HttpViewServer>(options, std::move(view),
                                                 std::move(trace));
  LEAT_TRY_VOID(server->open(options.port));
  return server;
}

}  // namespace leat
