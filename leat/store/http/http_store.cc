#include "leat/store/http/http_store.h"

#include <string_view>
#include <utility>

#include "leat/base/errors.h"
#include "leat/base/text.h"
#include "leat/store/http/content_range.h"
#include "leat/store/http/http_url.h"
#include "leat/store/http/last_modified.h"
#include "leat/store/http/object_checksum.h"
#include "leat/store/http/shown_text.h"
#include "leat/store/http/status.h"

namespace leat {
namespace {

/// A part ".." could lead out of the base URL.
bool stays_below_base(std::string_view key) {
  if (key.empty() || key.starts_with('/')) return false;
  for (;;) {
    const std::size_t slash = key.find('/');
    const std::string_view part = key.substr(0, slash);
    if (part == "." || part == "..") return false;
    if (slash == std::string_view::npos) return true;
    key.remove_prefix(slash + 1);
  }
}

class HttpStore final : public Store {
 public:
  HttpStore(std::string base_url, std::unique_ptr<HttpClient> client)
      : base_url_(std::move(base_url)), client_(std::move(client)) {}

  void read(ReadRequest request, std::stop_token stop, ReadDone done) override {
    if (auto checked = check_key(request.object.key); !checked) {
      return done(std::move(checked));
    }
    const std::uint64_t size_bytes = request.into.size();
    if (size_bytes == 0 || request.offset > UINT64_MAX - size_bytes) {
      return done(invalid(url_of(request.object.key) +
                          ": an empty range, or one past the end"));
    }
    HttpRequest get{.url = url_of(request.object.key),
                    .into = request.into,
                    .attempt = request.attempt};
    get.headers.push_back(range_header(request.offset, size_bytes));
    if (auto wanted = if_match_header(request.object.etag)) {
      get.headers.push_back(*std::move(wanted));
    }
    client_->send(
        std::move(get), std::move(stop),
        [this, object = std::move(request.object), offset = request.offset,
         into = request.into, done = std::move(done)](Result<HttpReply> reply) {
          done(judge(object, offset, into, std::move(reply)));
        });
  }

  Result<ListPage> list(const ListRequest&, std::stop_token) override {
    return invalid(base_url_ +
                   ": a plain web server cannot list what it has; index the "
                   "data where it can be listed (a folder or a bucket) and "
                   "publish the catalogue beside it");
  }

  Result<ObjectInfo> write(std::string_view key, std::span<const std::byte>,
                           std::stop_token) override {
    return invalid(
        url_of(key) +
        ": a plain web server takes no writes; write to a folder or a bucket");
  }

  Result<ObjectInfo> stat(std::string_view key, std::stop_token stop) override {
    LEAT_TRY_VOID(check_key(key));
    const std::string url = url_of(key);
    LEAT_TRY(const HttpReply reply,
             client_->send_and_wait({.method = "HEAD", .url = url},
                                    std::move(stop)));
    if (reply.status != 200) return error_from_reply(reply, "HEAD", url);
    ObjectInfo info{
        .key = std::string(key),
        .size_bytes = 0,
        .etag = std::string(reply.header("etag")),
        .modified_at = parse_last_modified(reply.header("last-modified"))};
    const auto size =
        number_from<std::uint64_t>(reply.header("content-length"));
    if (!size) {
      return invalid("HEAD {}: the server does not tell the size", url);
    }
    info.size_bytes = *size;
    return info;
  }

  StoreTraits traits() const override {
    return {.best_read_bytes = 8 << 20,
            .can_list = false,
            .can_write = false,
            .has_etags = true};
  }

  std::string url_of(std::string_view key) const override {
    return base_url_ + '/' + percent_encode_path(key);
  }

 private:
  Result<void> check_key(std::string_view key) const {
    if (stays_below_base(key)) return {};
    return invalid(
        "'{}' is not a key below {}: it is empty, begins with a slash, or has "
        "a '.' or '..' part",
        key, base_url_);
  }

  Result<void> judge(const ObjectId& object, std::uint64_t offset,
                     std::span<const std::byte> bytes,
                     Result<HttpReply> reply) const {
    if (!reply) return std::move(reply).error();
    if (!is_success(reply->status)) {
      return error_from_reply(*reply, "GET", url_of(object.key));
    }
    if (auto checked = check_range(*reply, object, offset, bytes.size());
        !checked) {
      return std::move(checked).error().while_doing("GET " +
                                                    url_of(object.key));
    }
    const std::string_view etag = reply->header("etag");
    if (!object.etag.empty() && !etag.empty() &&
        !same_version(etag, object.etag)) {
      return corrupt(
          "GET {}: the object changed: its ETag is {}, not {}; index again",
          url_of(object.key), shown_text(etag), object.etag);
    }
    if (auto checked = check_object_checksum(*reply, bytes); !checked) {
      return std::move(checked).error().while_doing("GET " +
                                                    url_of(object.key));
    }
    return {};
  }

  const std::string base_url_;
  const std::unique_ptr<HttpClient> client_;
};

}  // namespace

Result<std::unique_ptr<Store>> open_http_store(
    const std::string& base_url, std::unique_ptr<HttpClient> client) {
  LEAT_TRY_VOID(split_http_url(base_url));
  if (base_url.find_first_of("?#") != std::string::npos) {
    return invalid(url_for_people(base_url) +
                   ": the URL of a store has no query and no fragment");
  }
  std::string base = base_url;
  while (base.ends_with('/')) base.pop_back();
  return std::unique_ptr<Store>(
      std::make_unique<HttpStore>(std::move(base), std::move(client)));
}

}  // namespace leat
