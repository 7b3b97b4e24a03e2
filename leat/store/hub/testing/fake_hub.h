// A server that speaks the Hugging Face Hub's API as its reference documents
// it: trees in pages of seven, paths-info, resolve. Files of more than a
// thousand bytes redirect to a delivery network, which wants no token.
#pragma once
#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "leat/store/cloud/digest.h"
#include "leat/store/cloud/testing/fake_cloud.h"
#include "leat/store/testing/http_server.h"

namespace leat::testing {

class FakeHub {
 public:
  explicit FakeHub(std::map<std::string, std::string> files)
      : files_(std::move(files)),
        network_(
            [this](const ServerRequest& request) { return deliver(request); }),
        server_(
            [this](const ServerRequest& request) { return answer(request); }) {}

  static constexpr const char* kToken = "PLANTEDTOKEN";
  std::string url() const { return server_.url(); }
  std::size_t hub_requests() const { return server_.requests(); }
  /// Tokens that came to the delivery network, which should be none.
  int tokens_astray() const { return astray_; }

 private:
  static constexpr std::size_t kLarge = 1000;

  nlohmann::json entry(const std::string& path) const {
    const std::string& bytes = files_.at(path);
    nlohmann::json file = {{"type", "file"},
                           {"oid", sha256_hex(bytes).substr(0, 40)},
                           {"size", bytes.size()},
                           {"path", path}};
    if (bytes.size() > kLarge) {
      file["lfs"] = {{"oid", sha256_hex(bytes)}, {"size", bytes.size()}};
    }
    return file;
  }

  static ServerReply error(int status, const char* code) {
    return {.status = status, .headers = {{"X-Error-Code", code}}};
  }

  static ServerReply range(const std::string& bytes, std::string_view range,
                           const std::string& etag) {
    return fake_range(bytes, range, {"ETag", "W/\"" + etag + "\""})
        .value_or(ServerReply{.status = 416});
  }

  ServerReply deliver(const ServerRequest& request) {
    if (!request.header("authorization").empty()) ++astray_;
    const std::string path = uri_decode(request.target).substr(1);
    return range(files_.at(path), request.header("range"), "another");
  }

  ServerReply answer(const ServerRequest& request) {
    if (request.header("authorization") != std::string("Bearer ") + kToken) {
      return error(401, "RepoNotFound");
    }
    FakeTarget target(request.target);
    if (target.take("/api/datasets/me/ds/paths-info/main")) {
      const std::string wanted = uri_decode(request.body.substr(6));
      nlohmann::json found = nlohmann::json::array();
      if (files_.contains(wanted)) found.push_back(entry(wanted));
      return {.body = found.dump()};
    }
    if (target.take("/api/datasets/me/ds/tree/main")) return tree(target);
    if (!target.take("/datasets/me/ds/resolve/main/"))
      return error(404, "RepoNotFound");
    const std::string file = uri_decode(target.path);
    if (!files_.contains(file)) return error(404, "EntryNotFound");
    const std::string& bytes = files_.at(file);
    if (bytes.size() <= kLarge) {
      return range(bytes, request.header("range"),
                   sha256_hex(bytes).substr(0, 40));
    }
    return {.status = 302,
            .headers = {{"X-Linked-ETag", "\"" + sha256_hex(bytes) + "\""},
                        {"Location",
                         network_.url("/") + uri_encode(file, Slash::kKeep)}}};
  }

  /// `target`: "/folder?recursive=…&cursor=…".
  ServerReply tree(const FakeTarget& target) const {
    std::string folder = uri_decode(target.path);
    if (!folder.empty()) folder = folder.substr(1) + "/";
    const bool is_recursive = target.value("recursive") == "true";
    const std::string after = target.value("cursor");
    // Folders come before what they hold, as in git.
    std::map<std::string, nlohmann::json> entries;
    for (const auto& [path, bytes] : files_) {
      if (!path.starts_with(folder)) continue;
      const std::size_t cut = path.find('/', folder.size());
      if (cut != std::string::npos) {
        const std::string name = path.substr(0, cut);
        entries[name] = {{"type", "directory"}, {"path", name}};
        if (!is_recursive) continue;
      }
      entries[path] = entry(path);
    }
    if (entries.empty() && !folder.empty()) return error(404, "EntryNotFound");
    nlohmann::json page = nlohmann::json::array();
    ServerReply reply;
    std::string last;
    for (auto& [name, each] : entries) {
      if (name <= after) continue;
      if (page.size() == 7) {
        reply.headers.emplace_back(
            "Link", "<" + server_.url("/x?a=b&cursor=") +
                        uri_encode(last, Slash::kEncode) + ">; rel=\"next\"");
        break;
      }
      last = name;
      page.push_back(each);
    }
    reply.body = page.dump();
    return reply;
  }

  const std::map<std::string, std::string> files_;
  std::atomic<int> astray_ = 0;
  ScriptedServer network_;
  ScriptedServer server_;  // Last: their threads use the rest.
};

}  // namespace leat::testing
