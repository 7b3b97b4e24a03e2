// The Hub answers a read of a large file with a redirect to a content delivery
// network: a signed address that is good for about an hour, and names the
// content by its hash. The redirect says the hash, so it is there that the
// version is checked. Shards are read in many pieces, so addresses are
// remembered for a few minutes.

#include "leat/store/hub/hub_store.h"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/clock.h"
#include "leat/base/errors.h"
#include "leat/base/mutex.h"
#include "leat/store/cloud/checks.h"
#include "leat/store/cloud/list_past.h"
#include "leat/store/cloud/uri.h"
#include "leat/store/http/content_range.h"
#include "leat/store/http/status.h"
#include "leat/store/hub/replies.h"

namespace leat {
namespace {

constexpr std::size_t kMostErrorBytes = 64 << 10;
constexpr std::size_t kMostListBytes = 16 << 20;
constexpr int kMostHops = 4;
constexpr std::chrono::minutes kRemembered{5};
constexpr std::size_t kMostRemembered = 10'000;

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 ||
         status == 308;
}

/// The addresses of files on the delivery network.
///
/// Threads: any.
class Addresses {
 public:
  std::optional<std::string> find(const ObjectId& object) const {
    const MutexLock lock(mutex_);
    const auto found = by_name_.find(name_of(object));
    if (found == by_name_.end() || clock_.now() > found->second.until) {
      return std::nullopt;
    }
    return found->second.url;
  }
  void keep(const ObjectId& object, std::string url) {
    const MutexLock lock(mutex_);
    if (by_name_.size() >= kMostRemembered) by_name_.clear();
    by_name_[name_of(object)] = {std::move(url), clock_.now() + kRemembered};
  }
  void forget(const ObjectId& object) {
    const MutexLock lock(mutex_);
    by_name_.erase(name_of(object));
  }

 private:
  struct Address {
    std::string url;
    TimePoint until;
  };
  static std::string name_of(const ObjectId& object) {
    return object.etag + " " + object.key;
  }

  const SteadyClock clock_{};
  mutable Mutex mutex_;
  std::map<std::string, Address> by_name_ LEAT_GUARDED_BY(mutex_);
};

class HubStore final : public Store {
 public:
  HubStore(HubPlace place, HubSettings settings,
           std::unique_ptr<HttpClient> http)
      : origin_(settings.endpoint.scheme + "://" + settings.endpoint.host),
        base_url_(settings.endpoint.url()),
        repository_(std::move(place.repository)),
        revision_(std::move(place.revision)),
        token_(std::move(settings.token)),
        http_(std::move(http)) {}

  void read(ReadRequest request, std::stop_token stop, ReadDone done) override;
  Result<ListPage> list(const ListRequest& request,
                        std::stop_token stop) override;
  Result<ObjectInfo> write(std::string_view key, std::span<const std::byte>,
                           std::stop_token) override {
    return invalid(url_of(key) +
                   ": Leat does not write to the Hub, where a write is a "
                   "commit; write to a folder or a bucket");
  }
  Result<ObjectInfo> stat(std::string_view key, std::stop_token stop) override;

  StoreTraits traits() const override {
    return {.best_read_bytes = 8 << 20,
            .can_list = true,
            .can_write = false,
            .has_etags = true,
            .lists_in_order = false};
  }

  std::string url_of(std::string_view key) const override {
    const bool is_usual = revision_ == "main";
    return shown_url(
        fmt::format("hf://datasets/{}{}{}/", repository_, is_usual ? "" : "@",
                    is_usual ? "" : revision_),
        key);
  }

 private:
  /// A read, on its way along redirects.
  struct Walk {
    ReadRequest request;
    std::string url;
    int hops_left = kMostHops;
    std::stop_token stop;
    ReadDone done;
  };

  std::string api(std::string_view what) const;
  bool is_at_hub(std::string_view url) const;
  HttpRequest request_to(std::string url) const;
  void send(Walk walk);
  void go_on(Walk walk, Result<HttpReply> reply);
  Result<std::string> target_of(const HttpReply& reply) const;
  Result<void> judge(const Walk& walk, const HttpReply& reply);
  Result<ListPage> list_page(const ListRequest& request,
                             const std::stop_token& stop);
  std::string doing(const Walk& walk) const {
    return reading(url_of(walk.request.object.key), walk.request);
  }

  const std::string origin_;
  const std::string base_url_;
  const std::string repository_;
  const std::string revision_;
  const std::string token_;
  Addresses addresses_;
  const std::unique_ptr<HttpClient> http_;  // Last: its callbacks use the rest.
};

/// ".../api/datasets/OWNER/NAME/what/REVISION".
std::string HubStore::api(std::string_view what) const {
  return fmt::format("{}/api/datasets/{}/{}/{}", base_url_, repository_, what,
                     uri_encode(revision_, Slash::kEncode));
}

bool HubStore::is_at_hub(std::string_view url) const {
  return url.starts_with(origin_) &&
         url.substr(origin_.size()).starts_with('/');
}

/// The token goes to the Hub alone.
HttpRequest HubStore::request_to(std::string url) const {
  HttpRequest request;
  if (!token_.empty() && is_at_hub(url)) {
    request.headers.push_back("Authorization: Bearer " + token_);
  }
  request.url = std::move(url);
  request.most_body_bytes = kMostErrorBytes;
  return request;
}

void HubStore::read(ReadRequest request, std::stop_token stop, ReadDone done) {
  if (auto checked = check_read(request); !checked) {
    return done(std::move(checked).error().while_doing(
        reading(url_of(request.object.key), request)));
  }
  std::string url = addresses_.find(request.object)
                        .value_or(fmt::format(
                            "{}/datasets/{}/resolve/{}/{}", base_url_,
                            repository_, uri_encode(revision_, Slash::kEncode),
                            uri_encode(request.object.key, Slash::kKeep)));
  send({.request = std::move(request),
        .url = std::move(url),
        .stop = std::move(stop),
        .done = std::move(done)});
}

void HubStore::send(Walk walk) {
  HttpRequest get = request_to(walk.url);
  get.headers.push_back(
      range_header(walk.request.offset, walk.request.into.size()));
  get.into = walk.request.into;
  get.attempt = walk.request.attempt;
  const std::stop_token stop = walk.stop;
  http_->send(std::move(get), stop,
              [this, walk = std::move(walk)](Result<HttpReply> reply) mutable {
                go_on(std::move(walk), std::move(reply));
              });
}

void HubStore::go_on(Walk walk, Result<HttpReply> reply) {
  if (!reply) {
    return walk.done(std::move(reply).error().while_doing(doing(walk)));
  }
  if (auto judged = judge(walk, *reply); !judged) {
    return walk.done(std::move(judged));
  }
  if (!is_redirect(reply->status)) return walk.done({});
  Result<std::string> target = target_of(*reply);
  if (!target || walk.hops_left == 0) {
    return walk.done(unavailable("{}: {}", doing(walk),
                                 target ? "the server redirects in a circle"
                                        : target.error().message()));
  }
  if (!is_at_hub(*target)) addresses_.keep(walk.request.object, *target);
  walk.url = *std::move(target);
  --walk.hops_left;
  send(std::move(walk));
}

/// The address that a redirect names.
Result<std::string> HubStore::target_of(const HttpReply& reply) const {
  std::string target(reply.header("location"));
  if (target.starts_with('/') && !target.starts_with("//")) {
    target.insert(0, origin_);
  }
  const bool is_plain_allowed = origin_.starts_with("http:");
  if (target.starts_with("https://") ||
      (is_plain_allowed && target.starts_with("http://"))) {
    return target;
  }
  return unavailable("the server redirects to no https address");
}

Result<void> HubStore::judge(const Walk& walk, const HttpReply& reply) {
  const ObjectId& object = walk.request.object;
  const bool is_hubs = is_at_hub(walk.url);
  const bool leads_on = is_redirect(reply.status);
  if (!is_success(reply.status) && !leads_on) {
    if (is_hubs) return error_from_hub(reply, doing(walk), !token_.empty());
    addresses_.forget(object);
    if (reply.status != 403) {
      return error_from_hub(reply, doing(walk), !token_.empty());
    }
    return unavailable(
        "{}: the address that the Hub gave is no longer good; the next try "
        "asks for another",
        doing(walk));
  }
  std::string_view etag = reply.header("x-linked-etag");
  if (etag.empty() && !leads_on) etag = reply.header("etag");
  if (is_hubs && !object.etag.empty() && !etag.empty() &&
      !same_version(etag, object.etag)) {
    return corrupt(
        "{}: the file changed since it was indexed; index again, or name a "
        "commit as the revision",
        doing(walk));
  }
  if (leads_on) return {};
  auto right = check_range(reply, walk.request.object, walk.request.offset,
                           walk.request.into.size());
  if (!right) return std::move(right).error().while_doing(doing(walk));
  return {};
}

Result<ListPage> HubStore::list_page(const ListRequest& request,
                                     const std::stop_token& stop) {
  std::string url = api("tree");
  const std::size_t folder = request.prefix.rfind('/');
  if (folder != std::string::npos) {
    url += "/" + uri_encode(request.prefix.substr(0, folder), Slash::kKeep);
  }
  QueryPairs query = {
      {"recursive", request.delimiter.empty() ? "true" : "false"}};
  if (!request.resume.empty()) query.emplace_back("cursor", request.resume);
  HttpRequest get = request_to(url + "?" + canonical_query(query));
  get.most_body_bytes = kMostListBytes;
  const std::string doing = fmt::format("listing {}", url_of(request.prefix));
  const Result<HttpReply> reply = http_->send_and_wait(std::move(get), stop);
  if (!reply) return Error(reply.error()).while_doing(doing);
  // The dataset is there, and the folder is not.
  if (reply->status == 404 &&
      reply->header("x-error-code") == "EntryNotFound") {
    return ListPage{};
  }
  if (!is_success(reply->status)) {
    return error_from_hub(*reply, doing, !token_.empty());
  }
  Result<ListPage> page = parse_hub_tree(*reply, request.prefix);
  if (!page) return std::move(page).error().while_doing(doing);
  // Folders are entries of a whole listing, too.
  if (request.delimiter.empty()) page->common_prefixes.clear();
  return page;
}

Result<ListPage> HubStore::list(const ListRequest& request,
                                std::stop_token stop) {
  if (!request.delimiter.empty() && request.delimiter != "/") {
    return invalid("listing {}: the Hub knows no delimiter but '/'",
                   url_of(request.prefix));
  }
  return list_past(
      request, url_of(request.prefix),
      [&](const ListRequest& next) { return list_page(next, stop); });
}

Result<ObjectInfo> HubStore::stat(std::string_view key, std::stop_token stop) {
  if (key.empty()) {
    return invalid("an object needs a key");
  }
  const std::string doing = fmt::format("asking for {}", url_of(key));
  const std::string form = canonical_query({{"paths", std::string(key)}});
  HttpRequest post = request_to(api("paths-info"));
  post.method = "POST";
  post.headers.push_back("Content-Type: application/x-www-form-urlencoded");
  post.body = as_bytes(form);
  const Result<HttpReply> reply =
      http_->send_and_wait(std::move(post), std::move(stop));
  if (!reply) return Error(reply.error()).while_doing(doing);
  if (!is_success(reply->status)) {
    return error_from_hub(*reply, doing, !token_.empty());
  }
  LEAT_TRY(ListPage found, parse_hub_tree(*reply, ""));
  for (ObjectInfo& object : found.objects) {
    if (object.key == key) return std::move(object);
  }
  return not_found(
      "{}: there is no such file; check the spelling and, if the catalogue is "
      "old, index again",
      doing);
}

}  // namespace

std::unique_ptr<Store> open_hub_store(HubPlace place, HubSettings settings,
                                      std::unique_ptr<HttpClient> http) {
  return std::make_unique<HubStore>(std::move(place), std::move(settings),
                                    std::move(http));
}

}  // namespace leat
