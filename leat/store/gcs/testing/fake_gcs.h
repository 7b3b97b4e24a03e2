// A server that speaks Google Cloud Storage's JSON API as its reference
// documents it: objects.get, objects.list, objects.insert (media). Pages of
// seven; of other requests it says 404.
#pragma once
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "leat/base/mutex.h"
#include "leat/store/cloud/testing/fake_cloud.h"
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
    FakeTarget target(request.target);
    if (request.method == "POST" && target.has("name") &&
        target.path == "/upload/storage/v1/b/ds/o") {
      put(target.value("name"), request.body);
      const MutexLock lock(mutex_);
      const auto& [key, object] = *objects_.find(target.value("name"));
      return {.body = resource(key, object).dump()};
    }
    if (request.method != "GET" || !target.take("/storage/v1/b/ds/o")) {
      return error(404, "notFound");
    }
    const MutexLock lock(mutex_);
    if (target.path.empty()) return list(target);
    const auto found = objects_.find(uri_decode(target.path.substr(1)));
    if (found == objects_.end()) return error(404, "notFound");
    if (!target.has("alt")) {
      return {.body = resource(found->first, found->second).dump()};
    }
    return media(found->second, target.value("ifGenerationMatch"),
                 request.header("range"));
  }

  static ServerReply media(const Object& object, const std::string& wanted,
                           std::string_view range) {
    const std::string generation = std::to_string(object.generation);
    if (!wanted.empty() && wanted != generation) {
      return {.status = 412, .body = "Precondition Failed"};
    }
    return fake_range(object.bytes, range, {"x-goog-generation", generation})
        .value_or(ServerReply{.status = 416});
  }

  ServerReply list(const FakeTarget& target) const LEAT_REQUIRES(mutex_) {
    // The token is the last name of the page before.
    const FakePage found =
        fake_page(objects_.lower_bound(target.value("startOffset")),
                  objects_.end(), target.value("prefix"),
                  target.value("delimiter"), target.value("pageToken"));
    nlohmann::json page = {{"kind", "storage#objects"}};
    for (const std::string& key : found.keys) {
      page["items"].push_back(resource(key, objects_.at(key)));
    }
    if (!found.folders.empty()) page["prefixes"] = found.folders;
    if (!found.last.empty()) page["nextPageToken"] = found.last;
    return {.body = page.dump()};
  }

  const std::string token_;
  Mutex mutex_;
  std::map<std::string, Object> objects_ LEAT_GUARDED_BY(mutex_);
  std::uint64_t generation_ LEAT_GUARDED_BY(mutex_) = 1'700'000'000'000'000;
  ScriptedServer server_;  // Last: its threads use the rest.
};

}  // namespace leat::testing
