// An HttpClient that answers from a script, for the tests of this folder.
#pragma once
#include <cstring>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/store/http/http_client.h"
#include "leat/store/store.h"

namespace leat {

/// The requests that the fake got and the answers it gives. Outlives the fake.
struct HttpScript {
  std::vector<HttpRequest> asked;
  std::vector<std::string> bodies;  ///< Their bodies: `asked` only borrows.
  /// Used one after another; when none is left, HTTP 500.
  std::deque<Result<HttpReply>> replies;
  /// If set, gets each HttpDone, and the test calls them itself.
  std::function<void(HttpDone)> hold;

  void answer(int status, std::string body = {}, ReplyHeaders headers = {}) {
    replies.emplace_back(
        HttpReply{status, std::move(headers), std::move(body)});
  }

  /// The value of a header of a request; "(none)" if it was not sent.
  static std::string header(const HttpRequest& request, std::string_view name) {
    for (const std::string& line : request.headers) {
      if (line.starts_with(std::string(name) + ": ")) {
        return line.substr(name.size() + 2);
      }
    }
    return "(none)";
  }
};

/// Answers before send() returns; `into` of a 2xx is filled from the body.
class FakeHttp final : public HttpClient {
 public:
  explicit FakeHttp(HttpScript& script) : script_(script) {}

  void send(HttpRequest request, std::stop_token stop, HttpDone done) override {
    if (stop.stop_requested()) {
      return done(Error(ErrorCode::kCancelled, "cancelled"));
    }
    if (script_.hold) return script_.hold(std::move(done));
    Result<HttpReply> reply = HttpReply{500, {}, ""};
    if (!script_.replies.empty()) {
      reply = std::move(script_.replies.front());
      script_.replies.pop_front();
    }
    if (reply && reply->status / 100 == 2 && !request.into.empty()) {
      if (reply->body.size() != request.into.size()) {
        reply = Error(ErrorCode::kUnavailable, "short body");
      } else {
        std::memcpy(request.into.data(), reply->body.data(),
                    request.into.size());
        reply->body.clear();
      }
    }
    script_.bodies.emplace_back(as_text(request.body));
    script_.asked.push_back(std::move(request));
    done(std::move(reply));
  }

 private:
  HttpScript& script_;
};

/// Reads the four bytes from 10 on of "a b/c".
struct FourBytes {
  Result<void> read(Store& store, std::string etag = {}) {
    got.assign(4, '?');
    return read_range(store,
                      {.object = {.key = "a b/c", .etag = std::move(etag)},
                       .offset = 10,
                       .into = std::as_writable_bytes(std::span(got)),
                       .attempt = 3},
                      {});
  }
  std::string got;
};

}  // namespace leat
