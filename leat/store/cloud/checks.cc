#include "leat/store/cloud/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "leat/base/errors.h"
#include "leat/store/cloud/uri.h"

namespace leat {
namespace {

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != '\x7f';
  });
}

Error bad_page(std::string_view why) {
  return corrupt(
      "the server's list of objects is wrong: {}; check the endpoint URL", why);
}

Result<void> check_entry(std::string_view text, const std::string* before,
                         std::string_view prefix) {
  if (!text.starts_with(prefix)) {
    return bad_page("a key does not begin with the prefix asked for");
  }
  if (text.empty()) return bad_page("an empty key");
  if (before != nullptr && text <= *before) {
    return bad_page("its keys are not in byte order");
  }
  return {};
}

}  // namespace

Result<void> check_read(const ReadRequest& request) {
  const auto size = static_cast<std::uint64_t>(request.into.size());
  if (request.object.key.empty()) return invalid("an object needs a key");
  if (size == 0 ||
      size > std::numeric_limits<std::uint64_t>::max() - request.offset) {
    return invalid("the range is empty or runs past the end of any object");
  }
  if (!is_printable(request.object.etag)) {
    return invalid("the ETag holds control characters; index again");
  }
  return {};
}

Result<void> check_page(const ListPage& page, std::string_view prefix) {
  const std::string* before = nullptr;
  for (const ObjectInfo& object : page.objects) {
    LEAT_TRY_VOID(check_entry(object.key, before, prefix));
    before = &object.key;
  }
  before = nullptr;
  for (const std::string& folded : page.common_prefixes) {
    LEAT_TRY_VOID(check_entry(folded, before, prefix));
    before = &folded;
  }
  return {};
}

std::string reading(std::string_view url, const ReadRequest& request) {
  return fmt::format("reading {} [{}, {})", url, request.offset,
                     request.offset + request.into.size());
}

std::string shown_url(std::string place, std::string_view key) {
  if (is_printable(key)) return place.append(key);
  append_uri_encoded(place, key, Slash::kKeep);
  return place;
}

}  // namespace leat
