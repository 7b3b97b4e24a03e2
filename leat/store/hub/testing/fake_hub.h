// A server that speaks the Hugging Face Hub's API as its reference documents
// it: trees in pages of seven, paths-info, resolve. Files of more than a
// thousand bytes redirect to a delivery network, which wants no token.
#pragma once
#include <fmt/format.h>

#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

#include "leat/base/text.h"
#include "leat/store/cloud/digest.h"
#include "leat/store/cloud/uri.h"
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
    const std::size_t dash = range.find('-');
    const auto first = number_from<std::uint64_t>(range.substr(6, dash - 6));
    const auto last = number_from<std::uint64_t>(range.substr(dash + 1));
    if (!first || !last || *first >= bytes.size()) return {.status = 416};
    const std::uint64_t end = std::min(*last + 1, bytes.size());
    return {.status = 206,
            .headers = {{"ETag", "W/\"" + etag + "\""},
                        {"Content-Range", fmt::format("bytes {}-{}/{}", *first,
                                                      end - 1, bytes.size())}},
            .body = bytes.substr(*first, end - *first)};
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
    std::string_view path = request.target;
    const auto take = [&path](std::string_view front) {
      if (!path.starts_with(front)) return false;
      path.remove_prefix(front.size());
      return true;
    };
    if (take("/api/datasets/me/ds/paths-info/main")) {
      const std::string wanted = uri_decode(request.body.substr(6));
      nlohmann::json found = nlohmann::json::array();
      if (files_.contains(wanted)) found.push_back(entry(wanted));
      return {.body = found.dump()};
    }
    if (take("/api/datasets/me/ds/tree/main")) return tree(path);
    if (!take("/datasets/me/ds/resolve/main/"))
      return error(404, "RepoNotFound");
    const std::string file = uri_decode(path);
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
  ServerReply tree(std::string_view target) const {
    const std::size_t mark = target.find('?');
    std::string folder = uri_decode(target.substr(0, mark));
    const std::string_view query = target.substr(mark + 1);
    if (!folder.empty()) folder = folder.substr(1) + "/";
    const bool is_recursive =
        query.find("recursive=true") != std::string_view::npos;
    std::string after;
    if (const std::size_t at = query.find("cursor="); at == 0) {
      after = uri_decode(query.substr(7, query.find('&') - 7));
    }
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
