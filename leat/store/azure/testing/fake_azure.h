// A server that speaks Azure's Blob service as its reference documents it: Get
// Blob, Get Blob Properties, Put Blob, List Blobs (pages of seven), for one
// container of the account "acc", for whoever shows a SAS.
#pragma once
#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "leat/base/mutex.h"
#include "leat/base/text.h"
#include "leat/store/cloud/uri.h"
#include "leat/store/testing/http_server.h"

namespace leat::testing {

class FakeAzure {
 public:
  explicit FakeAzure(std::map<std::string, std::string> objects)
      : server_(
            [this](const ServerRequest& request) { return answer(request); }) {
    for (auto& [key, bytes] : objects) put(key, std::move(bytes));
  }

  std::string url() const { return server_.url("/acc"); }
  static constexpr const char* kSas = "sv=2021-08-06&sig=PLANTEDSAS%3D";

 private:
  struct Blob {
    std::string bytes;
    std::string etag;
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

  static ServerReply error(int status, const std::string& code) {
    return {.status = status,
            .headers = {{"x-ms-error-code", code}},
            .body = "<?xml version=\"1.0\"?><Error><Code>" + code +
                    "</Code><Message>sig=PLANTEDSAS</Message></Error>"};
  }

  std::string put(const std::string& key, std::string bytes) {
    const MutexLock lock(mutex_);
    const std::string etag = fmt::format("\"0x{:016X}\"", ++version_);
    blobs_[key] = {std::move(bytes), etag};
    return etag;
  }

  ServerReply answer(const ServerRequest& request) {
    const std::string_view target = request.target;
    const std::size_t mark = std::min(target.find('?'), target.size());
    const Query query =
        query_of(mark == target.size() ? "" : target.substr(mark + 1));
    const auto sig = query.find("sig");
    if (sig == query.end() || sig->second != "PLANTEDSAS=") {
      return error(403, "AuthenticationFailed");
    }
    std::string_view path = target.substr(0, mark);
    if (!path.starts_with("/acc/ds")) return error(404, "ContainerNotFound");
    path.remove_prefix(std::string_view("/acc/ds").size());
    if (path.empty()) {
      const MutexLock lock(mutex_);
      return list(query);
    }
    const std::string key = uri_decode(path.substr(1));
    if (request.method == "PUT") {
      if (request.header("x-ms-blob-type") != "BlockBlob") {
        return error(400, "MissingRequiredHeader");
      }
      return {.status = 201, .headers = {{"ETag", put(key, request.body)}}};
    }
    const MutexLock lock(mutex_);
    const auto found = blobs_.find(key);
    if (found == blobs_.end()) return error(404, "BlobNotFound");
    const Blob& blob = found->second;
    const std::string wanted = request.header("if-match");
    if (!wanted.empty() && wanted != blob.etag) {
      return error(412, "ConditionNotMet");
    }
    if (request.method == "HEAD") {
      return {
          .headers = {{"ETag", blob.etag},
                      {"Content-Length", std::to_string(blob.bytes.size())}}};
    }
    return range(blob, request.header("range"));
  }

  static ServerReply range(const Blob& blob, std::string_view range) {
    const std::size_t dash = range.find('-');
    const auto first = number_from<std::uint64_t>(range.substr(6, dash - 6));
    const auto last = number_from<std::uint64_t>(range.substr(dash + 1));
    if (!first || !last || *first >= blob.bytes.size()) {
      return error(416, "InvalidRange");
    }
    const std::uint64_t end = std::min(*last + 1, blob.bytes.size());
    return {
        .status = 206,
        .headers = {{"ETag", blob.etag},
                    {"Content-Range", fmt::format("bytes {}-{}/{}", *first,
                                                  end - 1, blob.bytes.size())}},
        .body = blob.bytes.substr(*first, end - *first)};
  }

  static std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
      if (c == '&' || c == '<' || c == '>') {
        out += fmt::format("&#{};", static_cast<int>(c));
      } else {
        out += c;
      }
    }
    return out;
  }

  ServerReply list(const Query& query) const LEAT_REQUIRES(mutex_) {
    const auto value = [&query](const char* name) {
      const auto found = query.find(name);
      return found == query.end() ? std::string() : found->second;
    };
    const std::string prefix = value("prefix");
    const std::string delimiter = value("delimiter");
    std::string page;
    std::string next;
    std::set<std::string> shown;
    for (const auto& [key, blob] : blobs_) {
      if (!key.starts_with(prefix)) continue;
      const std::size_t cut = delimiter.empty()
                                  ? std::string::npos
                                  : key.find(delimiter, prefix.size());
      const std::string name =
          cut == std::string::npos ? key : key.substr(0, cut + 1);
      if (name <= value("marker") || shown.contains(name)) continue;
      if (shown.size() == 7) {
        next = *shown.rbegin();
        break;
      }
      shown.insert(name);
      page += cut == std::string::npos
                  ? fmt::format(
                        "<Blob><Name>{}</Name><Properties>"
                        "<Content-Length>{}</Content-Length>"
                        "<Etag>{}</Etag></Properties></Blob>",
                        escaped(key), blob.bytes.size(),
                        blob.etag.substr(1, blob.etag.size() - 2))
                  : fmt::format("<BlobPrefix><Name>{}</Name></BlobPrefix>",
                                escaped(name));
    }
    return {.body =
                "\xef\xbb\xbf<?xml version=\"1.0\"?><EnumerationResults>"
                "<Blobs>" +
                page + "</Blobs><NextMarker>" + escaped(next) +
                "</NextMarker></EnumerationResults>"};
  }

  Mutex mutex_;
  std::map<std::string, Blob> blobs_ LEAT_GUARDED_BY(mutex_);
  std::uint64_t version_ LEAT_GUARDED_BY(mutex_) = 0x1000;
  ScriptedServer server_;  // Last: its threads use the rest.
};

}  // namespace leat::testing
