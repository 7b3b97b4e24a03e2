#include "leat/bucket/preconditions.h"

#include <algorithm>

#include "leat/store/cloud/http_date.h"

namespace leat {
namespace {

/// True if `list` is "*" or names `etag`, with quotes or without, weak or not.
bool names(std::string_view list, std::string_view etag) {
  while (!list.empty()) {
    std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(item.size() + 1, list.size()));
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    if (item.starts_with("W/")) item.remove_prefix(2);
    if (item.size() >= 2 && item.starts_with('"') && item.ends_with('"')) {
      item = item.substr(1, item.size() - 2);
    }
    if (item == "*" || item == etag) return true;
  }
  return false;
}

enum class Since { kChanged, kUnchanged, kUnknown };

/// Unknown without a date, or one that cannot be read: RFC 9110 passes over it.
Since changes_since(const std::string& date, const ObjectState& state) {
  const auto since = parse_http_date(date);
  if (!since) return Since::kUnknown;
  return state.modified_ns / 1'000'000'000 > since->time_since_epoch().count()
             ? Since::kChanged
             : Since::kUnchanged;
}

}  // namespace

Preconditions Preconditions::of(const RequestHead& head) {
  return {
      .if_match = std::string(head.header("if-match")),
      .if_none_match = std::string(head.header("if-none-match")),
      .if_modified_since = std::string(head.header("if-modified-since")),
      .if_unmodified_since = std::string(head.header("if-unmodified-since"))};
}

Verdict check_read(const Preconditions& conditions, const ObjectState& state) {
  if (!conditions.if_match.empty()) {
    if (!names(conditions.if_match, state.etag)) return Verdict::kFailed;
  } else if (changes_since(conditions.if_unmodified_since, state) ==
             Since::kChanged) {
    return Verdict::kFailed;
  }
  if (!conditions.if_none_match.empty()) {
    return names(conditions.if_none_match, state.etag) ? Verdict::kNotModified
                                                       : Verdict::kProceed;
  }
  return changes_since(conditions.if_modified_since, state) == Since::kUnchanged
             ? Verdict::kNotModified
             : Verdict::kProceed;
}

Verdict check_write(const Preconditions& conditions, const ObjectState* state) {
  if (!conditions.if_match.empty() &&
      (state == nullptr || !names(conditions.if_match, state->etag))) {
    return Verdict::kFailed;
  }
  if (!conditions.if_none_match.empty() && state != nullptr &&
      names(conditions.if_none_match, state->etag)) {
    return Verdict::kFailed;
  }
  return Verdict::kProceed;
}

}  // namespace leat
