#include "leat/store/s3/s3_store.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/check.h"
#include "leat/base/errors.h"
#include "leat/base/text.h"
#include "leat/store/cloud/checks.h"
#include "leat/store/cloud/http_date.h"
#include "leat/store/cloud/judge.h"
#include "leat/store/cloud/refreshing.h"
#include "leat/store/http/content_range.h"
#include "leat/store/http/last_modified.h"
#include "leat/store/http/object_checksum.h"
#include "leat/store/http/status.h"
#include "leat/store/s3/error_reply.h"
#include "leat/store/s3/list_reply.h"

namespace leat {
namespace {

constexpr std::size_t kMostListBytes = 8 << 20;

/// Pages that hold nothing and say that there is more: some services send a few
/// where much was deleted.
constexpr int kMostEmptyPages = 1000;

/// Buckets of S3 Express, which lists in no order.
bool is_directory_bucket(std::string_view bucket) {
  return bucket.ends_with("--x-s3");
}

class S3Store final : public Store {
 public:
  S3Store(std::string_view bucket, S3Settings settings,
          std::unique_ptr<HttpClient> http, WallNow now)
      : bucket_(bucket),
        credentials_(keep_credentials(settings.credentials, settings.provider,
                                      settings.turn_path)),
        object_header_(settings.object_header),
        maker_(std::move(settings), std::move(now)),
        http_(std::move(http)) {}

  ~S3Store() override { LEAT_CHECK(reads_in_flight_ == 0); }

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
    return shown_url(
        fmt::format("{}://{}/", maker_.settings()->scheme, bucket_), key);
  }

 private:
  using MadeWith = RequestMaker::MadeWith;

  void send_read(ReadRequest request, CredentialsRef who, std::stop_token stop,
                 ReadDone done);
  void finish_read(const ReadDone& done, Result<void> result);
  Result<void> judge_read(const ReadRequest& request, const MadeWith& with,
                          Result<HttpReply> reply);
  Result<ListPage> list_page(const ListRequest& request,
                             const std::stop_token& stop);
  /// Sends, waits, and turns a reply that is not a success into its error.
  Result<HttpReply> ask(RequestMaker::Wanted wanted, std::string doing,
                        std::size_t most_body_bytes,
                        const std::stop_token& stop);
  Error error_of(const HttpReply& reply, const MadeWith& with,
                 std::string doing);
  bool cure(const HttpReply& reply, const MadeWith& with);
  std::string reading(const ReadRequest& request) const;
  std::vector<std::string> object_headers() const;
  Error why_head_failed(std::string_view key, Error error, std::string doing,
                        const std::stop_token& stop);

  const std::string bucket_;
  const std::unique_ptr<RefreshingCredentials> credentials_;
  const std::string_view object_header_;
  RequestMaker maker_;
  std::atomic<std::int64_t> reads_in_flight_ = 0;
  const std::unique_ptr<HttpClient> http_;  // Last: its callbacks use the rest.
};

std::string S3Store::reading(const ReadRequest& request) const {
  return leat::reading(url_of(request.object.key), request);
}

std::vector<std::string> S3Store::object_headers() const {
  if (object_header_.empty()) return {};
  return {std::string(object_header_)};
}

void S3Store::read(ReadRequest request, std::stop_token stop, ReadDone done) {
  if (auto checked = check_read(request); !checked) {
    return done(std::move(checked).error().while_doing(reading(request)));
  }
  reads_in_flight_.fetch_add(1, std::memory_order_relaxed);
  CredentialsRef who = credentials_ ? credentials_->current() : nullptr;
  if (who || !credentials_) {
    return send_read(std::move(request), std::move(who), std::move(stop),
                     std::move(done));
  }
  credentials_->when_ready(
      stop, [this, request = std::move(request), stop,
             done = std::move(done)](Result<CredentialsRef> got) mutable {
        if (!got) {
          return finish_read(
              done, std::move(got).error().while_doing(reading(request)));
        }
        send_read(std::move(request), *std::move(got), std::move(stop),
                  std::move(done));
      });
}

void S3Store::send_read(ReadRequest request, CredentialsRef who,
                        std::stop_token stop, ReadDone done) {
  RequestMaker::Wanted wanted{.method = "GET",
                              .key = request.object.key,
                              .query = {},
                              .headers = object_headers(),
                              .body = {},
                              .wants_checksum = true};
  wanted.headers.push_back(range_header(request.offset, request.into.size()));
  if (auto version = if_match_header(request.object.etag)) {
    wanted.headers.push_back(*std::move(version));
  }
  RequestMaker::Made made = maker_.make(std::move(wanted), std::move(who));
  made.http.into = request.into;
  made.http.most_body_bytes = kMostS3ErrorBytes;
  made.http.attempt = request.attempt;
  made.http.takes_misfits = true;
  http_->send(std::move(made.http), std::move(stop),
              [this, request = std::move(request), with = std::move(made.with),
               done = std::move(done)](Result<HttpReply> reply) {
                finish_read(done, judge_read(request, with, std::move(reply)));
              });
}

/// A service that fails after it has promised success sends an <Error>
/// in place of the bytes, which then becomes the body. An object that
/// is one has an ETag.
bool is_error_as_success(HttpReply& reply, std::span<const std::byte> into) {
  if (reply.status != 200 || !reply.header("etag").empty()) return false;
  const std::string_view body = reply.misfit ? reply.body : as_text(into);
  if (body.size() > kMostS3ErrorBytes || !body.starts_with('<') ||
      !parse_s3_error(body)) {
    return false;
  }
  if (!reply.misfit) reply.body = body;
  return true;
}

void S3Store::finish_read(const ReadDone& done, Result<void> result) {
  // Before `done`, which may be what destroys this store.
  reads_in_flight_.fetch_sub(1, std::memory_order_release);
  done(std::move(result));
}

Result<void> S3Store::judge_read(const ReadRequest& request,
                                 const MadeWith& with,
                                 Result<HttpReply> reply) {
  if (!reply) return std::move(reply).error().while_doing(reading(request));
  if (!is_success(reply->status) || is_error_as_success(*reply, request.into)) {
    return error_of(*reply, with, reading(request));
  }
  if (reply->misfit)
    return std::move(*reply->misfit).while_doing(reading(request));
  if (auto checked = check_carried(*reply, request, kEtag); !checked) {
    return std::move(checked).error().while_doing(reading(request));
  }
  if (auto checked = check_object_checksum(*reply, request.into); !checked) {
    return std::move(checked).error().while_doing(reading(request));
  }
  return {};
}

Error S3Store::error_of(const HttpReply& reply, const MadeWith& with,
                        std::string doing) {
  Error error =
      error_from_s3(reply, {.doing = std::move(doing),
                            .bucket = bucket_,
                            .host = with.settings->host,
                            .region = with.settings->region,
                            .is_signed = with.who != nullptr,
                            .keys_remedy = with.settings->keys_remedy});
  if (!cure(reply, with)) return error;
  // The next try goes with the server's time, to the right region, or with
  // newer credentials.
  return unavailable(error.message());
}

/// True if the cause is gone now, or will be for the next try.
bool S3Store::cure(const HttpReply& reply, const MadeWith& with) {
  const S3Errand errand = errand_of(reply);
  switch (errand.cure) {
    case S3Cure::kNone:
      return false;
    case S3Cure::kClock: {
      const auto server_time = parse_server_time(reply.header("date"));
      return server_time && maker_.adopt_server_time(with, *server_time);
    }
    case S3Cure::kRegion:
      return maker_.adopt_region(with, errand.region);
    case S3Cure::kCredentials:
      return with.who && credentials_->reject(with.who);
  }
  return false;
}

Result<HttpReply> S3Store::ask(RequestMaker::Wanted wanted, std::string doing,
                               std::size_t most_body_bytes,
                               const std::stop_token& stop) {
  CredentialsRef who;
  if (credentials_) {
    Result<CredentialsRef> got = credentials_->wait(stop);
    if (!got) return std::move(got).error().while_doing(doing);
    who = *std::move(got);
  }
  RequestMaker::Made made = maker_.make(std::move(wanted), std::move(who));
  made.http.most_body_bytes = most_body_bytes;
  Result<HttpReply> reply = http_->send_and_wait(std::move(made.http), stop);
  if (!reply) return std::move(reply).error().while_doing(doing);
  const bool is_error =
      !is_success(reply->status) || (reply->body.size() <= kMostS3ErrorBytes &&
                                     parse_s3_error(reply->body).has_value());
  if (is_error) return error_of(*reply, made.with, std::move(doing));
  return reply;
}

Result<ListPage> S3Store::list(const ListRequest& request,
                               std::stop_token stop) {
  ListRequest next = request;
  for (int empty_pages = 0;; ++empty_pages) {
    LEAT_TRY(ListPage page, list_page(next, stop));
    if (page.resume.empty()) return page;
    const bool is_same = page.resume == next.resume;
    if (is_same || empty_pages == kMostEmptyPages) {
      return corrupt(
          "listing {}: the list does not advance: {}; check the service at {}",
          url_of(request.prefix),
          is_same
              ? "a page leads to itself"
              : "1,000 pages in a row hold nothing and say that there is more",
          maker_.settings()->host);
    }
    if (!page.objects.empty() || !page.common_prefixes.empty()) return page;
    next.resume = std::move(page.resume);
  }
}

Result<ListPage> S3Store::list_page(const ListRequest& request,
                                    const std::stop_token& stop) {
  QueryPairs query = {{"list-type", "2"}, {"encoding-type", "url"}};
  if (!request.prefix.empty()) query.emplace_back("prefix", request.prefix);
  if (!request.delimiter.empty()) {
    query.emplace_back("delimiter", request.delimiter);
  }
  if (!request.resume.empty()) {
    query.emplace_back("continuation-token", request.resume);
  } else if (!request.start_after.empty()) {
    query.emplace_back("start-after", request.start_after);
  }
  const std::string doing = fmt::format("listing {}", url_of(request.prefix));
  LEAT_TRY(const HttpReply reply, ask({.method = "GET",
                                       .key = {},
                                       .query = std::move(query),
                                       .headers = {},
                                       .body = {}},
                                      doing, kMostListBytes, stop));
  Result<ListPage> page = parse_list_reply(reply.body, request.prefix);
  if (!page) return std::move(page).error().while_doing(doing);
  if (is_directory_bucket(bucket_)) page->is_sorted = false;
  return page;
}

Result<ObjectInfo> S3Store::write(std::string_view key,
                                  std::span<const std::byte> bytes,
                                  std::stop_token stop) {
  if (key.empty()) {
    return invalid("an object needs a key");
  }
  LEAT_TRY(
      const HttpReply reply,
      ask({.method = "PUT",
           .key = key,
           .query = {},
           .headers = {"Content-Type: application/octet-stream"},
           .body = bytes},
          fmt::format("writing {}", url_of(key)), kMostS3ErrorBytes, stop));
  return ObjectInfo{.key = std::string(key),
                    .size_bytes = bytes.size(),
                    .etag = std::string(reply.header("etag"))};
}

Result<ObjectInfo> S3Store::stat(std::string_view key, std::stop_token stop) {
  if (key.empty()) {
    return invalid("an object needs a key");
  }
  const std::string doing = fmt::format("asking for {}", url_of(key));
  Result<HttpReply> reply = ask({.method = "HEAD",
                                 .key = key,
                                 .query = {},
                                 .headers = object_headers(),
                                 .body = {}},
                                doing, kMostS3ErrorBytes, stop);
  if (!reply) {
    return why_head_failed(key, std::move(reply).error(), doing, stop);
  }
  const auto size = number_from<std::uint64_t>(reply->header("content-length"));
  if (!size) {
    return unavailable("{}: the reply has no size", doing);
  }
  return ObjectInfo{
      .key = std::string(key),
      .size_bytes = *size,
      .etag = std::string(reply->header("etag")),
      .modified_at = parse_last_modified(reply->header("last-modified"))};
}

/// The reply to a HEAD has no body, so a refusal does not say why. A GET of one
/// byte does.
Error S3Store::why_head_failed(std::string_view key, Error error,
                               std::string doing, const std::stop_token& stop) {
  if (error.code() != ErrorCode::kPermissionDenied &&
      error.code() != ErrorCode::kInvalidArgument) {
    return error;
  }
  const Result<HttpReply> reply =
      ask({.method = "GET",
           .key = key,
           .query = {},
           .headers = {"Range: bytes=0-0"},
           .body = {}},
          std::move(doing), kMostS3ErrorBytes, stop);
  if (!reply) return reply.error();
  return error;
}

}  // namespace

std::unique_ptr<Store> open_s3_store(std::string_view bucket,
                                     S3Settings settings,
                                     std::unique_ptr<HttpClient> http,
                                     WallNow now) {
  return std::make_unique<S3Store>(bucket, std::move(settings), std::move(http),
                                   std::move(now));
}

Result<std::unique_ptr<Store>> open_s3_store(std::string_view bucket,
                                             const S3Options& options,
                                             const Env& env,
                                             HttpClientOptions http,
                                             Metrics* metrics) {
  LEAT_TRY(S3Settings settings, resolve_s3_settings(bucket, options, env));
  if (!settings.ca_bundle.empty()) http.ca_bundle = settings.ca_bundle;
  return open_s3_store(bucket, std::move(settings),
                       open_http_client(http, metrics));
}

}  // namespace leat
