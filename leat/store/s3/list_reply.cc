#include "leat/store/s3/list_reply.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <pugixml.hpp>
#include <utility>
#include <vector>

#include "leat/base/errors.h"
#include "leat/base/text.h"
#include "leat/store/cloud/list_xml.h"
#include "leat/store/cloud/uri.h"

namespace leat {
namespace {

// A full page has 1,000 entries of at most some thirty tags; this bounds the
// memory that the tree takes.
constexpr std::ptrdiff_t kMostTags = 200'000;

Error bad_list(std::string_view why) {
  return corrupt(
      "the server's list of objects is not S3's: {}; check --endpoint-url",
      why);
}

/// AWS escapes keys as forms are: a blank is '+' and '+' is %2B.
std::string decoded(std::string_view text, bool is_url_encoded) {
  std::string out(text);
  if (!is_url_encoded) return out;
  std::replace(out.begin(), out.end(), '+', ' ');
  return uri_decode(out);
}

std::string quoted(std::string_view etag) {
  if (etag.empty() || etag.ends_with('"')) return std::string(etag);
  return fmt::format("\"{}\"", etag);  // Some servers leave the quotes out.
}

/// Nullopt if `text` may be a key under `prefix`.
std::optional<Error> misplaced(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) {
    return bad_list("a key does not begin with the prefix asked for");
  }
  if (text.empty()) return bad_list("an empty key");
  return std::nullopt;
}

std::string_view key_of(const ObjectInfo& object) { return object.key; }
std::string_view key_of(const std::string& prefix) { return prefix; }

/// Puts them in byte order, which `is_sorted` says they were. False if one is
/// there twice.
template <class Entry>
bool put_in_order(std::vector<Entry>& entries, bool& is_sorted) {
  const auto key = [](const Entry& entry) { return key_of(entry); };
  if (!std::ranges::is_sorted(entries, {}, key)) {
    is_sorted = false;
    std::ranges::sort(entries, {}, key);
  }
  return std::ranges::adjacent_find(entries, {}, key) == entries.end();
}

}  // namespace

Result<ListPage> parse_list_reply(std::string_view body,
                                  std::string_view prefix) {
  pugi::xml_document document;
  if (const auto wrong = load_list_xml(body, kMostTags, document);
      !wrong.empty()) {
    return bad_list(wrong);
  }
  const pugi::xml_node root = document.child("ListBucketResult");
  if (!root) return bad_list("it has no ListBucketResult");
  const bool is_url_encoded =
      std::string_view(root.child_value("EncodingType")) == "url";

  ListPage page;
  for (const pugi::xml_node entry : root.children("Contents")) {
    ObjectInfo object;
    object.key = decoded(entry.child_value("Key"), is_url_encoded);
    if (auto wrong = misplaced(object.key, prefix)) return *std::move(wrong);
    const auto size = number_from<std::uint64_t>(entry.child_value("Size"));
    if (!size) return bad_list("a size is not a number");
    object.size_bytes = *size;
    object.etag = quoted(entry.child_value("ETag"));
    page.objects.push_back(std::move(object));
  }
  for (const pugi::xml_node entry : root.children("CommonPrefixes")) {
    std::string folded = decoded(entry.child_value("Prefix"), is_url_encoded);
    if (auto wrong = misplaced(folded, prefix)) return *std::move(wrong);
    page.common_prefixes.push_back(std::move(folded));
  }
  if (!put_in_order(page.objects, page.is_sorted) ||
      !put_in_order(page.common_prefixes, page.is_sorted)) {
    return bad_list("a key is there twice");
  }
  if (std::string_view(root.child_value("IsTruncated")) == "true") {
    page.resume = root.child_value("NextContinuationToken");
    if (page.resume.empty()) {
      return bad_list("there is more, but no token to go on with");
    }
  }
  return page;
}

}  // namespace leat
