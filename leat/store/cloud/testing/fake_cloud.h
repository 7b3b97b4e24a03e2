// Targets, ranges and pages, for the fake servers of clouds.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/base/text.h"
#include "leat/store/cloud/uri.h"
#include "leat/store/testing/http_server.h"

namespace leat::testing {

/// "/path?name=value&…", cut.
struct FakeTarget {
  explicit FakeTarget(std::string_view target) {
    const std::size_t mark = std::min(target.find('?'), target.size());
    path = target.substr(0, mark);
    std::string_view rest = target.substr(std::min(mark + 1, target.size()));
    while (!rest.empty()) {
      const std::string_view pair = rest.substr(0, rest.find('&'));
      rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
      const std::size_t equals = pair.find('=');
      query[uri_decode(pair.substr(0, equals))] =
          uri_decode(pair.substr(equals + 1));
    }
  }

  /// True if the path begins so; then that part is cut off.
  bool take(std::string_view front) {
    if (!path.starts_with(front)) return false;
    path.remove_prefix(front.size());
    return true;
  }
  bool has(const std::string& name) const { return query.contains(name); }
  /// Empty if there is none of this name.
  std::string value(const std::string& name) const {
    const auto found = query.find(name);
    return found == query.end() ? std::string() : found->second;
  }

  std::string_view path;
  std::map<std::string, std::string> query;
};

/// The 206 for "bytes=0-99", with the headers that tell the version; nullopt if
/// the range runs past the end.
inline std::optional<ServerReply> fake_range(
    const std::string& bytes, std::string_view range,
    std::pair<std::string, std::string> version) {
  const std::size_t dash = range.find('-');
  const auto first = number_from<std::uint64_t>(range.substr(6, dash - 6));
  const auto last = number_from<std::uint64_t>(range.substr(dash + 1));
  if (!first || !last || *first >= bytes.size()) return std::nullopt;
  const std::uint64_t end = std::min<std::uint64_t>(*last + 1, bytes.size());
  return ServerReply{
      .status = 206,
      .headers = {std::move(version),
                  {"Content-Range", fmt::format("bytes {}-{}/{}", *first,
                                                end - 1, bytes.size())}},
      .body = bytes.substr(*first, end - *first)};
}

/// A page of a listing. Both are in byte order.
struct FakePage {
  std::vector<std::string> keys;
  std::vector<std::string> folders;
  std::string last;  ///< The last name, if more follow; else empty.
};

/// The next seven names under a prefix, behind `after`.
template <class Iterator>
FakePage fake_page(Iterator object, Iterator end, const std::string& prefix,
                   const std::string& delimiter, const std::string& after) {
  FakePage page;
  std::string last;
  for (; object != end; ++object) {
    const std::string& key = object->first;
    if (!key.starts_with(prefix)) continue;
    const std::size_t cut = delimiter.empty()
                                ? std::string::npos
                                : key.find(delimiter, prefix.size());
    const bool is_folder = cut != std::string::npos;
    const std::string name = is_folder ? key.substr(0, cut + 1) : key;
    if (name <= std::max(after, last)) continue;
    if (page.keys.size() + page.folders.size() == 7) {
      page.last = last;
      break;
    }
    last = name;
    (is_folder ? page.folders : page.keys).push_back(name);
  }
  return page;
}

}  // namespace leat::testing
