#include "leat/index/inventory_rows.h"

#include <fmt/format.h>

#include <optional>

#include "leat/base/text.h"

namespace leat {
namespace {

std::optional<int> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

/// Keys stand there as in a form: %XX, and '+' for a blank.
std::optional<std::string> decoded_key(std::string_view text) {
  std::string key;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      key.push_back(' ');
    } else if (text[i] != '%') {
      key.push_back(text[i]);
    } else {
      if (i + 2 >= text.size()) return std::nullopt;
      const auto high = hex_digit(text[i + 1]);
      const auto low = hex_digit(text[i + 2]);
      if (!high || !low) return std::nullopt;
      key.push_back(static_cast<char>(*high * 16 + *low));
      i += 2;
    }
  }
  return key;
}

}  // namespace

Result<void> InventoryRows::feed(std::string_view text) {
  for (const char c : text) {
    if (++row_bytes_ > kMostRowBytes) return corrupt("too long");
    LEAT_TRY_VOID(take(c));
  }
  return {};
}

Result<void> InventoryRows::take(char c) {
  switch (state_) {
    case State::kQuoted:
      if (c == '"') {
        state_ = State::kQuoteInQuoted;
      } else {
        fields_.back().push_back(c);
      }
      return {};
    case State::kQuoteInQuoted:
      if (c == '"') {
        fields_.back().push_back(c);
        state_ = State::kQuoted;
        return {};
      }
      state_ = State::kPlain;
      if (c != ',' && c != '\n' && c != '\r') return corrupt("a stray quote");
      [[fallthrough]];
    case State::kPlain:
      break;
  }
  if (c == '"') {
    if (!fields_.back().empty()) return corrupt("a stray quote");
    state_ = State::kQuoted;
  } else if (c == ',') {
    if (fields_.size() == columns_.count) return corrupt("too many columns");
    fields_.emplace_back();
  } else if (c == '\n') {
    return end_row();
  } else if (c != '\r') {
    fields_.back().push_back(c);
  }
  return {};
}

Result<void> InventoryRows::end_row() {
  const bool is_blank = fields_.size() == 1 && fields_.front().empty();
  std::vector<std::string> fields = {""};
  fields.swap(fields_);
  row_bytes_ = 0;
  if (is_blank) return {};
  LEAT_TRY_VOID(keep(fields));
  ++row_;
  return {};
}

Result<void> InventoryRows::keep(const std::vector<std::string>& fields) {
  if (fields.size() != columns_.count) return corrupt("too few columns");
  const auto is = [&](std::optional<std::size_t> column,
                      std::string_view text) {
    return column && fields[*column] == text;
  };
  // These are empty if there are no versions.
  if (is(columns_.is_latest, "false") ||
      is(columns_.is_delete_marker, "true")) {
    return {};
  }
  auto key = decoded_key(fields[columns_.key]);
  if (!key) return corrupt("a key that is not URL-encoded");
  if (!key->starts_with(prefix_)) return {};
  ObjectInfo object;
  object.key = key->substr(prefix_.size());
  const auto size = number_from<std::uint64_t>(fields[columns_.size]);
  if (!size) return corrupt("no size");
  object.size_bytes = *size;
  if (columns_.etag && !fields[*columns_.etag].empty()) {
    object.etag = fmt::format("\"{}\"", fields[*columns_.etag]);
  }
  objects_.push_back(std::move(object));
  return {};
}

Result<void> InventoryRows::finish() {
  if (state_ == State::kQuoted) return corrupt("cut short");
  state_ = State::kPlain;
  LEAT_TRY_VOID(end_row());  // The last line need not end.
  row_ = 1;
  return {};
}

Error InventoryRows::corrupt(std::string_view why) const {
  return Error(ErrorCode::kCorrupt, fmt::format("row {}: {}", row_, why));
}

}  // namespace leat
