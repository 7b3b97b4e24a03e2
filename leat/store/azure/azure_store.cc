#include "leat/store/azure/azure_store.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <utility>

#include "leat/base/errors.h"
#include "leat/base/text.h"
#include "leat/store/azure/replies.h"
#include "leat/store/azure/shared_key.h"
#include "leat/store/cloud/checks.h"
#include "leat/store/cloud/judge.h"
#include "leat/store/cloud/list_past.h"
#include "leat/store/cloud/ranged_get.h"
#include "leat/store/cloud/uri.h"
#include "leat/store/http/content_range.h"
#include "leat/store/http/last_modified.h"

namespace leat {
namespace {

constexpr std::size_t kMostListBytes = 16 << 20;
constexpr std::string_view kVersion = "x-ms-version: 2021-08-06";
/// Azure takes signatures of 15 minutes around its own time.
constexpr std::chrono::minutes kClockNoise{1};

Error no_key() { return invalid("an object needs a key"); }

class AzureStore final : public Store {
 public:
  AzureStore(std::string_view container, std::string url,
             const AzureSettings& settings, std::unique_ptr<HttpClient> http,
             WallNow now)
      : url_(std::move(url)),
        base_url_(fmt::format("{}/{}", settings.endpoint.url(), container)),
        now_(std::move(now)),
        http_(
            keep_credentials(settings.credentials, settings.provider,
                             settings.turn_path),
            [this](const Credentials& who, HttpRequest& request) {
              return authorize(who, request);
            },
            std::move(http)) {}

  void read(ReadRequest request, std::stop_token stop, ReadDone done) override;
  Result<ListPage> list(const ListRequest& request,
                        std::stop_token stop) override;
  Result<ObjectInfo> write(std::string_view key,
                           std::span<const std::byte> bytes,
                           std::stop_token stop) override;
  Result<ObjectInfo> stat(std::string_view key, std::stop_token stop) override;

  StoreTraits traits() const override {
    return {.best_read_bytes = 8 << 20,
            .can_list = true,
            .can_write = true,
            .has_etags = true,
            .lists_in_order = false};
  }

  std::string url_of(std::string_view key) const override {
    return shown_url(url_ + "/", key);
  }

 private:
  HttpRequest request_for(std::string method, std::string_view key) const;
  std::chrono::seconds authorize(const Credentials& who,
                                 HttpRequest& request) const;
  Error error_of(const AuthorizedReply& reply, std::string doing);
  bool adopt_server_time(const AuthorizedReply& reply);
  /// Sends, waits, and turns a reply that is not a success into its error.
  Result<HttpReply> ask(HttpRequest request, const std::string& doing,
                        const std::stop_token& stop);
  Result<ListPage> list_page(const ListRequest& request,
                             const std::stop_token& stop);

  const std::string url_;
  const std::string base_url_;
  const WallNow now_;
  std::atomic<std::chrono::seconds::rep> clock_offset_ = 0;
  const ErrorOfReply error_of_ = [this](const AuthorizedReply& reply,
                                        std::string doing) {
    return error_of(reply, std::move(doing));
  };
  AuthorizedHttp http_;  // Last: its callbacks use the rest.
};

HttpRequest AzureStore::request_for(std::string method,
                                    std::string_view key) const {
  HttpRequest request;
  request.method = std::move(method);
  request.url = base_url_;
  if (!key.empty()) {
    request.url += '/';
    append_uri_encoded(request.url, key, Slash::kKeep);
  }
  request.headers.emplace_back(kVersion);
  request.most_body_bytes = kMostAzureErrorBytes;
  return request;
}

std::chrono::seconds AzureStore::authorize(const Credentials& who,
                                           HttpRequest& request) const {
  const std::chrono::seconds offset(
      clock_offset_.load(std::memory_order_relaxed));
  const WallTime time = now_() + offset;
  request.headers.push_back("x-ms-date: " +
                            http_date(time.time_since_epoch().count()));
  if (!who.bearer_token.empty()) {
    send_bearer_token(who, request);
  } else if (!who.secret_access_key.empty()) {
    sign_with_shared_key(who, request);
  } else {
    const bool has_query = request.url.find('?') != std::string::npos;
    request.url.append(has_query ? "&" : "?").append(who.session_token);
  }
  return offset;
}

void AzureStore::read(ReadRequest request, std::stop_token stop,
                      ReadDone done) {
  if (auto checked = check_read(request); !checked) {
    return done(std::move(checked).error().while_doing(
        reading(url_of(request.object.key), request)));
  }
  HttpRequest get = request_for("GET", request.object.key);
  if (auto wanted = if_match_header(request.object.etag)) {
    get.headers.push_back(*std::move(wanted));
  }
  RangedGet ranged{.url = url_of(request.object.key),
                   .http = std::move(get),
                   .tag = kEtag,
                   .error_of = error_of_};
  send_ranged_get(http_, std::move(ranged), std::move(request), std::move(stop),
                  std::move(done));
}

Error AzureStore::error_of(const AuthorizedReply& reply, std::string doing) {
  return error_from_azure(
      reply.http,
      {.doing = std::move(doing),
       .is_anonymous = !http_.has_credentials(),
       .may_succeed_now = reply.has_newer || adopt_server_time(reply)});
}

/// True if the request was refused for a wrong clock, and is not the next time.
bool AzureStore::adopt_server_time(const AuthorizedReply& reply) {
  if (reply.http.status != 403 ||
      azure_error_code(reply.http) != "AuthenticationFailed") {
    return false;
  }
  const auto theirs = parse_server_time(reply.http.header("date"));
  if (!theirs) return false;
  const std::chrono::seconds offset = *theirs - now_();
  clock_offset_.store(offset.count(), std::memory_order_relaxed);
  // Many are under way when the first reply tells: the others go again, too.
  return std::chrono::abs(offset - reply.clock_offset) > kClockNoise;
}

Result<HttpReply> AzureStore::ask(HttpRequest request, const std::string& doing,
                                  const std::stop_token& stop) {
  return judge_call(doing, http_.send_and_wait(std::move(request), stop),
                    error_of_);
}

Result<ListPage> AzureStore::list_page(const ListRequest& request,
                                       const std::stop_token& stop) {
  QueryPairs query = {{"restype", "container"}, {"comp", "list"}};
  if (!request.prefix.empty()) query.emplace_back("prefix", request.prefix);
  if (!request.delimiter.empty()) {
    query.emplace_back("delimiter", request.delimiter);
  }
  if (!request.resume.empty()) query.emplace_back("marker", request.resume);
  const std::string doing = fmt::format("listing {}", url_of(request.prefix));
  HttpRequest get = request_for("GET", "");
  get.url += "?" + canonical_query(query);
  get.most_body_bytes = kMostListBytes;
  LEAT_TRY(const HttpReply reply, ask(std::move(get), doing, stop));
  Result<ListPage> page = parse_azure_list(reply.body, request.prefix);
  if (!page) return std::move(page).error().while_doing(doing);
  return page;
}

Result<ListPage> AzureStore::list(const ListRequest& request,
                                  std::stop_token stop) {
  return list_past(
      request, url_of(request.prefix),
      [&](const ListRequest& next) { return list_page(next, stop); });
}

Result<ObjectInfo> AzureStore::write(std::string_view key,
                                     std::span<const std::byte> bytes,
                                     std::stop_token stop) {
  if (key.empty()) return no_key();
  HttpRequest put = request_for("PUT", key);
  put.headers.emplace_back("x-ms-blob-type: BlockBlob");
  put.headers.emplace_back("Content-Type: application/octet-stream");
  put.body = bytes;
  LEAT_TRY(const HttpReply reply,
           ask(std::move(put), fmt::format("writing {}", url_of(key)), stop));
  return ObjectInfo{.key = std::string(key),
                    .size_bytes = bytes.size(),
                    .etag = std::string(reply.header("etag"))};
}

Result<ObjectInfo> AzureStore::stat(std::string_view key,
                                    std::stop_token stop) {
  if (key.empty()) return no_key();
  const std::string doing = fmt::format("asking for {}", url_of(key));
  LEAT_TRY(const HttpReply reply, ask(request_for("HEAD", key), doing, stop));
  const auto size = number_from<std::uint64_t>(reply.header("content-length"));
  if (!size) {
    return unavailable("{}: the reply has no size", doing);
  }
  return ObjectInfo{
      .key = std::string(key),
      .size_bytes = *size,
      .etag = std::string(reply.header("etag")),
      .modified_at = parse_last_modified(reply.header("last-modified"))};
}

}  // namespace

std::unique_ptr<Store> open_azure_store(std::string_view container,
                                        std::string url, AzureSettings settings,
                                        std::unique_ptr<HttpClient> http,
                                        WallNow now) {
  return std::make_unique<AzureStore>(container, std::move(url), settings,
                                      std::move(http), std::move(now));
}

}  // namespace leat
