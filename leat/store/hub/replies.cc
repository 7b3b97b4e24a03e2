#include "leat/store/hub/replies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "leat/base/errors.h"
#include "leat/store/cloud/checks.h"
#include "leat/store/cloud/endpoint.h"
#include "leat/store/cloud/json_text.h"
#include "leat/store/cloud/uri.h"
#include "leat/store/http/shown_text.h"
#include "leat/store/http/status.h"

namespace leat {
namespace {

using Json = nlohmann::json;

Error bad(std::string_view why) {
  return corrupt(
      "the server's list of files is not the Hub's: {}; check HF_ENDPOINT",
      why);
}

/// The cursor of `Link: <https://…?cursor=…>; rel="next"`; empty on the last
/// page.
std::string next_cursor(std::string_view link) {
  if (link.find("rel=\"next\"") == std::string_view::npos) return {};
  for (const std::string_view name : {"?cursor=", "&cursor="}) {
    const std::size_t at = link.find(name);
    if (at == std::string_view::npos) continue;
    link.remove_prefix(at + name.size());
    return uri_decode(link.substr(0, link.find_first_of("&>")));
  }
  return {};
}

Result<ObjectInfo> file_of(const Json& entry, std::string path) {
  const Json* const large = json_member(entry, "lfs");
  const Json& content = large != nullptr && large->is_object() ? *large : entry;
  const Json* const size = json_member(content, "size");
  if (size == nullptr || !size->is_number_unsigned()) {
    return bad("a size is not a number");
  }
  ObjectInfo file{.key = std::move(path),
                  .size_bytes = size->get<std::uint64_t>(),
                  .etag = json_text(content, "oid")};
  if (file.etag.empty() || !consists_of(file.etag, "")) {
    return bad("a hash is none");
  }
  return file;
}

}  // namespace

Result<ListPage> parse_hub_tree(const HttpReply& reply,
                                std::string_view prefix) {
  const std::string_view body = reply.body;
  if (has_too_many_nodes(body)) return bad("it is too large");
  const Json entries = parse_json_text(body);
  if (!entries.is_array()) return bad("it is no JSON array");
  ListPage page;
  for (const Json& entry : entries) {
    std::string path = json_text(entry, "path");
    const bool is_folder = json_text(entry, "type") == "directory";
    if (is_folder) path += '/';
    // The tree of the prefix's folder holds its neighbours, too.
    if (path.size() <= prefix.size() || !path.starts_with(prefix)) continue;
    if (is_folder) {
      page.common_prefixes.push_back(std::move(path));
    } else {
      LEAT_TRY(ObjectInfo file, file_of(entry, std::move(path)));
      page.objects.push_back(std::move(file));
    }
  }
  // A tree has git's order, which is not that of paths.
  std::ranges::sort(page.objects, {}, &ObjectInfo::key);
  std::ranges::sort(page.common_prefixes);
  LEAT_TRY_VOID(check_page(page, prefix));
  page.resume = next_cursor(reply.header("link"));
  return page;
}

Error error_from_hub(const HttpReply& reply, std::string_view doing,
                     bool has_token) {
  // A delivery network may repeat its address, which is signed: the Hub's own
  // codes are short words.
  const std::string said = shown_without_long_words(
      shown_text(reply.header("x-error-code"), reply.sent_values));
  std::string_view remedy = "the server does not accept the request";
  switch (error_code_of(reply.status)) {
    case ErrorCode::kPermissionDenied:
      remedy =
          has_token
              ? "the token may not read this; check the name, and on the Hub "
                "that you have access, and have accepted the dataset's terms"
              : "there is no such dataset, or it is private or gated; check "
                "the name, and set HF_TOKEN or run `hf auth login`";
      break;
    case ErrorCode::kNotFound:
      remedy =
          "there is no file, dataset or revision of this name; check the "
          "spelling and, if the catalogue is old, index again";
      break;
    case ErrorCode::kThrottled:
      remedy =
          "the Hub asks for fewer requests; set HF_TOKEN, whose limits are "
          "higher, or lower max_in_flight";
      break;
    case ErrorCode::kUnavailable:
      remedy = "the service failed and may recover";
      break;
    default:
      if (reply.status == 416) {
        remedy = "the range runs past the end; if the file shrank, index again";
      }
      break;
  }
  return Error(error_code_of(reply.status),
               fmt::format("{}: HTTP {}{}{} ({})", doing, reply.status,
                           said.empty() ? "" : " ", said, remedy));
}

}  // namespace leat
