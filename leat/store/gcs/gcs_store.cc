#include "leat/store/gcs/gcs_store.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "leat/base/errors.h"
#include "leat/base/text.h"
#include "leat/store/cloud/checks.h"
#include "leat/store/cloud/judge.h"
#include "leat/store/cloud/list_past.h"
#include "leat/store/cloud/ranged_get.h"
#include "leat/store/cloud/uri.h"
#include "leat/store/gcs/replies.h"
#include "leat/store/s3/s3_store.h"

namespace leat {
namespace {

constexpr std::size_t kMostErrorBytes = 64 << 10;
constexpr std::size_t kMostListBytes = 8 << 20;
/// Objects that are stored compressed come as they are stored: unpacked, they
/// have no ranges and no size.
constexpr std::string_view kAsStored = "Accept-Encoding: gzip";
constexpr VersionTag kGeneration{.header = "x-goog-generation",
                                 .name = "generation"};

Error no_key() { return invalid("an object needs a key"); }

class GcsStore final : public Store {
 public:
  GcsStore(std::string_view bucket, const GcsSettings& settings,
           std::unique_ptr<HttpClient> http)
      : bucket_(bucket),
        base_url_(settings.endpoint.url()),
        user_project_(settings.user_project),
        http_(keep_credentials({}, settings.provider, settings.turn_path),
              &send_bearer_token, std::move(http)) {}

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
            .has_etags = true};
  }

  std::string url_of(std::string_view key) const override {
    return shown_url("gs://" + bucket_ + "/", key);
  }

 private:
  /// A request to "/storage/v1/b/BUCKET/o…".
  HttpRequest request_to(std::string_view api, std::string_view key,
                         const QueryPairs& query) const;
  /// Sends, waits, and turns a reply that is not a success into its error.
  Result<std::string> ask(HttpRequest request, const std::string& doing,
                          std::stop_token stop);
  Result<ListPage> list_page(const ListRequest& request,
                             const std::stop_token& stop);

  const std::string bucket_;
  const std::string base_url_;
  const std::string user_project_;
  const ErrorOfReply error_of_ = [this](const AuthorizedReply& reply,
                                        std::string doing) {
    return error_from_gcs(reply.http, {.doing = std::move(doing),
                                       .is_anonymous = !http_.has_credentials(),
                                       .has_newer = reply.has_newer});
  };
  AuthorizedHttp http_;  // Last: its callbacks use the rest.
};

HttpRequest GcsStore::request_to(std::string_view api, std::string_view key,
                                 const QueryPairs& query) const {
  HttpRequest request;
  request.url = fmt::format("{}{}/storage/v1/b/{}/o", base_url_, api, bucket_);
  if (!key.empty()) {
    request.url += '/';
    append_uri_encoded(request.url, key, Slash::kEncode);
  }
  if (!query.empty()) request.url += "?" + canonical_query(query);
  if (!user_project_.empty()) {
    request.headers.push_back("x-goog-user-project: " + user_project_);
  }
  request.most_body_bytes = kMostErrorBytes;
  return request;
}

void GcsStore::read(ReadRequest request, std::stop_token stop, ReadDone done) {
  if (auto checked = check_read(request); !checked) {
    return done(std::move(checked).error().while_doing(
        reading(url_of(request.object.key), request)));
  }
  QueryPairs query = {{"alt", "media"}};
  if (const std::string& generation = request.object.etag;
      !generation.empty()) {
    if (!number_from<std::uint64_t>(generation)) {
      return done(
          corrupt("{}: the object changed since it was indexed, or was indexed "
                  "over another protocol: {} is no generation; index again",
                  reading(url_of(request.object.key), request), generation));
    }
    query.emplace_back("ifGenerationMatch", generation);
  }
  HttpRequest get = request_to("", request.object.key, query);
  get.headers.emplace_back(kAsStored);
  RangedGet ranged{.url = url_of(request.object.key),
                   .http = std::move(get),
                   .tag = kGeneration,
                   .error_of = error_of_};
  send_ranged_get(http_, std::move(ranged), std::move(request), std::move(stop),
                  std::move(done));
}

Result<std::string> GcsStore::ask(HttpRequest request, const std::string& doing,
                                  std::stop_token stop) {
  LEAT_TRY(HttpReply reply,
           judge_call(doing,
                      http_.send_and_wait(std::move(request), std::move(stop)),
                      error_of_));
  return std::move(reply.body);
}

Result<ListPage> GcsStore::list(const ListRequest& request,
                                std::stop_token stop) {
  return list_past(
      request, url_of(request.prefix),
      [&](const ListRequest& next) { return list_page(next, stop); });
}

Result<ListPage> GcsStore::list_page(const ListRequest& request,
                                     const std::stop_token& stop) {
  QueryPairs query = {
      {"fields", "items(name,size,generation),prefixes,nextPageToken"}};
  if (!request.prefix.empty()) query.emplace_back("prefix", request.prefix);
  if (!request.delimiter.empty()) {
    query.emplace_back("delimiter", request.delimiter);
  }
  if (!request.start_after.empty()) {
    query.emplace_back("startOffset", request.start_after);
  }
  if (!request.resume.empty()) query.emplace_back("pageToken", request.resume);
  const std::string doing = fmt::format("listing {}", url_of(request.prefix));
  HttpRequest get = request_to("", "", query);
  get.most_body_bytes = kMostListBytes;
  LEAT_TRY(const std::string body, ask(std::move(get), doing, stop));
  Result<ListPage> page =
      parse_gcs_list(body, request.prefix, request.start_after);
  if (!page) return std::move(page).error().while_doing(doing);
  return page;
}

Result<ObjectInfo> GcsStore::write(std::string_view key,
                                   std::span<const std::byte> bytes,
                                   std::stop_token stop) {
  if (key.empty()) return no_key();
  HttpRequest post = request_to(
      "/upload", "", {{"uploadType", "media"}, {"name", std::string(key)}});
  post.method = "POST";
  post.headers.push_back("Content-Type: application/octet-stream");
  post.body = bytes;
  const std::string doing = fmt::format("writing {}", url_of(key));
  LEAT_TRY(const std::string body,
           ask(std::move(post), doing, std::move(stop)));
  Result<ObjectInfo> written = parse_gcs_object(body, key);
  if (!written) return std::move(written).error().while_doing(doing);
  return written;
}

Result<ObjectInfo> GcsStore::stat(std::string_view key, std::stop_token stop) {
  if (key.empty()) return no_key();
  const std::string doing = fmt::format("asking for {}", url_of(key));
  LEAT_TRY(const std::string body,
           ask(request_to("", key, {{"fields", "size,generation,updated"}}),
               doing, std::move(stop)));
  Result<ObjectInfo> info = parse_gcs_object(body, key);
  if (!info) return std::move(info).error().while_doing(doing);
  return info;
}

/// The bucket over S3's protocol, which takes HMAC keys.
std::unique_ptr<Store> open_with_hmac(std::string_view bucket,
                                      GcsSettings settings,
                                      std::unique_ptr<HttpClient> http) {
  const Endpoint& endpoint = settings.endpoint;
  S3Settings s3;
  s3.scheme = "gs";
  s3.keys_remedy =
      "check the HMAC key in GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY (or "
      "GCS_KEY and GCS_SECRET), and what its account may do: "
      "roles/storage.objectViewer, roles/storage.objectUser to write";
  s3.host = endpoint.host;
  s3.base_path = fmt::format("{}/{}", endpoint.path, bucket);
  s3.base_url = fmt::format("{}/{}", endpoint.url(), bucket);
  s3.region = "auto";
  s3.credentials = std::move(settings.hmac_keys);
  s3.user_project = std::move(settings.user_project);
  s3.object_header = kAsStored;
  return open_s3_store(bucket, std::move(s3), std::move(http));
}

}  // namespace

std::unique_ptr<Store> open_gcs_store(std::string_view bucket,
                                      GcsSettings settings,
                                      std::unique_ptr<HttpClient> http) {
  if (settings.hmac_keys) {
    return open_with_hmac(bucket, std::move(settings), std::move(http));
  }
  return std::make_unique<GcsStore>(bucket, settings, std::move(http));
}

}  // namespace leat
