#include "leat/store/azure/shared_key.h"

#include <algorithm>
#include <array>
#include <map>

#include "leat/base/text.h"
#include "leat/store/cloud/digest.h"
#include "leat/store/cloud/uri.h"

namespace leat {
namespace {

/// The headers of a request, names in lower case.
std::map<std::string, std::string> headers_of(const HttpRequest& request) {
  std::map<std::string, std::string> headers;
  for (const std::string& line : request.headers) {
    const std::size_t colon = line.find(": ");
    headers[lowered(line.substr(0, colon))] = line.substr(colon + 2);
  }
  return headers;
}

/// "/account/path\nname:value…", with the query's names in order.
std::string canonical_resource(std::string_view account, std::string_view url) {
  url.remove_prefix(url.find("://") + 3);
  url.remove_prefix(std::min(url.find('/'), url.size()));
  const std::size_t mark = std::min(url.find('?'), url.size());
  std::string text = "/";
  text.append(account).append(url.substr(0, mark));
  url.remove_prefix(std::min(mark + 1, url.size()));
  std::map<std::string, std::string> query;
  while (!url.empty()) {
    const std::string_view pair = url.substr(0, url.find('&'));
    const std::size_t equals = std::min(pair.find('='), pair.size());
    query[lowered(uri_decode(pair.substr(0, equals)))] =
        uri_decode(pair.substr(std::min(equals + 1, pair.size())));
    url.remove_prefix(std::min(pair.size() + 1, url.size()));
  }
  for (const auto& [name, value] : query) {
    text.append("\n").append(name).append(":").append(value);
  }
  return text;
}

}  // namespace

std::string shared_key_string_to_sign(std::string_view account,
                                      const HttpRequest& request) {
  constexpr std::array<const char*, 11> kStandard = {"content-encoding",
                                                     "content-language",
                                                     "content-length",
                                                     "content-md5",
                                                     "content-type",
                                                     "date",
                                                     "if-modified-since",
                                                     "if-match",
                                                     "if-none-match",
                                                     "if-unmodified-since",
                                                     "range"};
  auto headers = headers_of(request);
  if (!request.body.empty()) {
    headers["content-length"] = std::to_string(request.body.size());
  }
  std::string text = request.method + "\n";
  for (const char* name : kStandard) text.append(headers[name]).append("\n");
  for (const auto& [name, value] : headers) {
    if (!name.starts_with("x-ms-")) continue;
    text.append(name).append(":").append(value).append("\n");
  }
  return text + canonical_resource(account, request.url);
}

void sign_with_shared_key(const Credentials& who, HttpRequest& request) {
  const std::string to_sign =
      shared_key_string_to_sign(who.access_key_id, request);
  std::string line = "Authorization: SharedKey " + who.access_key_id + ":";
  line += base64(as_view(hmac_sha256(who.secret_access_key, to_sign)));
  request.headers.push_back(std::move(line));
}

}  // namespace leat
