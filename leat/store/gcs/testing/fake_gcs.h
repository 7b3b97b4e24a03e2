// A server that speaks Google Cloud Storage's JSON API as its reference
// documents it: objects.get, objects.list, objects.insert (media). Pages of
// seven; of other requests it says 404.
#pragma once
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

#include "leat/base/mutex.h"
#include "leat/base/text.h"
#include "leat/store/cloud/uri.h"
#include "leat/store/testing/http_server.h"

namespace leat::testing {

class FakeGcs {
 public:
  /// `token`: the only one that may ask; empty for anybody.
  FakeGcs(std::map<std::string, std::string> objects, std::string token = {})
      : token_(std::move(token)), server_([this](const ServerRequest& request) {
          return answer(request);
        }) {
    for (auto& [key, bytes] : objects) put(key, std::move(bytes));
  }

  std::string url() const { return server_.url(); }

 private:
  struct Object {
    std::string bytes;
    std::uint64_t generation;
  };
  using Query = std::map<std::string, std::string>;

  static Query query_of(std::string_view text) {
    Query query;
    while (!text.empty()) {
      const std::string_view pair = text.substr(0, text.find('&'));
      text.remove_prefix(std::min(pair.size() + 1, text.size()));
      const std::size_t equals = pair.find('=');
      query[uri_decode(pair.substr(0, equals))] =
          uri_decode(pair.substr(equals + 1));
    }
    return query;
  }

  static nlohmann::json resource(const std::string& key, const Object& object) {
    return {{"name", key},
            {"size", std::to_string(object.bytes.size())},
            {"generation", std::to_string(object.generation)},
            {"updated", "2024-02-29T12:00:00.123Z"}};
  }

  static ServerReply error(int status, std::string_view reason) {
    return {.status = status,
            .headers = {{"Content-Type", "application/json"}},
            .body = fmt::format(R"({{"error":{{"code":{},"message":"{}",)"
                                R"("errors":[{{"reason":"{}"}}]}}}})",
                                status, reason, reason)};
  }

  void put(const std::string& key, std::string bytes) {
    const MutexLock lock(mutex_);
    objects_[key] = {std::move(bytes), ++generation_};
  }

  ServerReply answer(const ServerRequest& request) {
    if (!token_.empty() &&
        request.header("authorization") != "Bearer " + token_) {
      return error(401, "authError");
    }
    const std::string_view target = request.target;
    const std::size_t mark = std::min(target.find('?'), target.size());
    const Query query =
        query_of(mark == target.size() ? "" : target.substr(mark + 1));
    std::string_view path = target.substr(0, mark);
    if (request.method == "POST" && path == "/upload/storage/v1/b/ds/o" &&
        query.contains("name")) {
      put(query.at("name"), request.body);
      const MutexLock lock(mutex_);
      const auto& [key, object] = *objects_.find(query.at("name"));
      return {.body = resource(key, object).dump()};
    }
    constexpr std::string_view kObjects = "/storage/v1/b/ds/o";
    if (request.method != "GET" || !path.starts_with(kObjects)) {
      return error(404, "notFound");
    }
    path.remove_prefix(kObjects.size());
    const MutexLock lock(mutex_);
    if (path.empty()) return list(query);
    const auto found = objects_.find(uri_decode(path.substr(1)));
    if (found == objects_.end()) return error(404, "notFound");
    if (!query.contains("alt")) {
      return {.body = resource(found->first, found->second).dump()};
    }
    return media(found->second, query, request.header("range"));
  }

  static ServerReply media(const Object& object, const Query& query,
                           std::string_view range) {
    const std::string generation = std::to_string(object.generation);
    const auto wanted = query.find("ifGenerationMatch");
    if (wanted != query.end() && wanted->second != generation) {
      return {.status = 412, .body = "Precondition Failed"};
    }
    const std::size_t dash = range.find('-');
    const auto first = number_from<std::uint64_t>(range.substr(6, dash - 6));
    const auto last = number_from<std::uint64_t>(range.substr(dash + 1));
    if (!first || !last || *first >= object.bytes.size()) {
      return {.status = 416};
    }
    const std::uint64_t end = std::min(*last + 1, object.bytes.size());
    return {.status = 206,
            .headers = {{"x-goog-generation", generation},
                        {"Content-Range",
                         fmt::format("bytes {}-{}/{}", *first, end - 1,
                                     object.bytes.size())}},
            .body = object.bytes.substr(*first, end - *first)};
  }

  ServerReply list(const Query& query) const LEAT_REQUIRES(mutex_) {
    const auto value = [&query](const char* name) {
      const auto found = query.find(name);
      return found == query.end() ? std::string() : found->second;
    };
    const std::string prefix = value("prefix");
    const std::string delimiter = value("delimiter");
    // The token is the last name of the page before.
    const std::string after = value("pageToken");
    nlohmann::json items = nlohmann::json::array();
    std::set<std::string> folded;
    nlohmann::json page = {{"kind", "storage#objects"}};
    std::string last;
    for (const auto& [key, object] : objects_) {
      if (!key.starts_with(prefix) || key < value("startOffset")) continue;
      const std::size_t cut = delimiter.empty()
                                  ? std::string::npos
                                  : key.find(delimiter, prefix.size());
      const std::string name =
          cut == std::string::npos ? key : key.substr(0, cut + 1);
      if ((!after.empty() && name <= after) || folded.contains(name)) continue;
      if (items.size() + folded.size() == 7) {
        page["nextPageToken"] = last;
        break;
      }
      last = name;
      if (cut == std::string::npos) {
        items.push_back(resource(key, object));
      } else {
        folded.insert(name);
      }
    }
    if (!items.empty()) page["items"] = items;
    if (!folded.empty()) page["prefixes"] = folded;
    return {.body = page.dump()};
  }

  const std::string token_;
  Mutex mutex_;
  std::map<std::string, Object> objects_ LEAT_GUARDED_BY(mutex_);
  std::uint64_t generation_ LEAT_GUARDED_BY(mutex_) = 1'700'000'000'000'000;
  ScriptedServer server_;  // Last: its threads use the rest.
};

}  // namespace leat::testing
