// A server that speaks Azure's Blob service as its reference documents it: Get
// Blob, Get Blob Properties, Put Blob, List Blobs (pages of seven), for one
// container of the account "acc", for whoever shows a SAS.
#pragma once
#include <fmt/format.h>

#include <map>
#include <string>
#include <string_view>

#include "leat/base/mutex.h"
#include "leat/store/cloud/testing/fake_cloud.h"
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
    FakeTarget target(request.target);
    if (target.value("sig") != "PLANTEDSAS=") {
      return error(403, "AuthenticationFailed");
    }
    if (!target.take("/acc/ds")) return error(404, "ContainerNotFound");
    if (target.path.empty()) {
      const MutexLock lock(mutex_);
      return list(target);
    }
    const std::string key = uri_decode(target.path.substr(1));
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
    return fake_range(blob.bytes, request.header("range"), {"ETag", blob.etag})
        .value_or(error(416, "InvalidRange"));
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

  ServerReply list(const FakeTarget& target) const LEAT_REQUIRES(mutex_) {
    const FakePage found =
        fake_page(blobs_.begin(), blobs_.end(), target.value("prefix"),
                  target.value("delimiter"), target.value("marker"));
    std::string page;
    for (const std::string& key : found.keys) {
      const Blob& blob = blobs_.at(key);
      page += fmt::format(
          "<Blob><Name>{}</Name><Properties>"
          "<Content-Length>{}</Content-Length>"
          "<Etag>{}</Etag></Properties></Blob>",
          escaped(key), blob.bytes.size(),
          blob.etag.substr(1, blob.etag.size() - 2));
    }
    for (const std::string& folder : found.folders) {
      page += fmt::format("<BlobPrefix><Name>{}</Name></BlobPrefix>",
                          escaped(folder));
    }
    return {.body =
                "\xef\xbb\xbf<?xml version=\"1.0\"?><EnumerationResults>"
                "<Blobs>" +
                page + "</Blobs><NextMarker>" + escaped(found.last) +
                "</NextMarker></EnumerationResults>"};
  }

  Mutex mutex_;
  std::map<std::string, Blob> blobs_ LEAT_GUARDED_BY(mutex_);
  std::uint64_t version_ LEAT_GUARDED_BY(mutex_) = 0x1000;
  ScriptedServer server_;  // Last: its threads use the rest.
};

}  // namespace leat::testing
