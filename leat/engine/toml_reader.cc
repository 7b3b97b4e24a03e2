#include "leat/engine/toml_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>

#include <chrono>
#include <cmath>

#include "leat/base/errors.h"
#include "leat/base/units.h"

namespace leat {
namespace {

constexpr std::size_t kMostBytes = 1 << 20;

}  // namespace

const toml::node* TomlReader::find(std::string_view key, bool is_required) {
  known_.emplace(key);
  const toml::node* node = table_.get(key);
  if (node == nullptr && is_required) {
    refuse(key, "is missing");
  }
  return node;
}

void TomlReader::refuse(std::string_view key, const std::string& why) {
  if (wrong_.has_value()) return;
  const toml::node* node = table_.get(key);
  const auto line =
      (node != nullptr ? node->source() : table_.source()).begin.line;
  wrong_ = invalid("{} (line {}): {} {}", where_, line, key, why);
}

std::uint64_t TomlReader::number(std::string_view key, std::uint64_t least,
                                 std::uint64_t most,
                                 std::optional<std::uint64_t> otherwise) {
  const toml::node* node = find(key, !otherwise.has_value());
  if (node == nullptr) return otherwise.value_or(least);
  const auto* value = node->as_integer();
  if (value == nullptr || value->get() < 0 ||
      static_cast<std::uint64_t>(value->get()) < least ||
      static_cast<std::uint64_t>(value->get()) > most) {
    refuse(key,
           fmt::format("must be a whole number from {} to {}", least, most));
    return least;
  }
  return static_cast<std::uint64_t>(value->get());
}

std::uint64_t TomlReader::bytes(std::string_view key,
                                std::optional<std::uint64_t> otherwise) {
  const toml::node* node = find(key, !otherwise.has_value());
  return node == nullptr ? otherwise.value_or(0) : bytes_of(*node, key);
}

std::vector<std::uint64_t> TomlReader::sizes(std::string_view key,
                                             std::uint64_t otherwise) {
  const toml::node* node = find(key, false);
  if (node == nullptr) return {otherwise};
  const toml::array* list = node->as_array();
  if (list == nullptr) return {bytes_of(*node, key)};
  if (list->empty()) refuse(key, "is an empty list: give a size");
  std::vector<std::uint64_t> sizes;
  sizes.reserve(list->size());
  for (const toml::node& one : *list) sizes.push_back(bytes_of(one, key));
  return sizes;
}

std::uint64_t TomlReader::bytes_of(const toml::node& node,
                                   std::string_view key) {
  if (const auto* value = node.as_integer(); value != nullptr) {
    if (value->get() >= 0) return static_cast<std::uint64_t>(value->get());
  } else if (const auto* written = node.as_string(); written != nullptr) {
    Result<std::uint64_t> parsed = parse_bytes(written->get());
    if (parsed) return *parsed;
    refuse(key, fmt::format("is no size: {}", parsed.error().message()));
    return 0;
  }
  refuse(key, "must be a number of bytes, or a size such as \"64MiB\"");
  return 0;
}

double TomlReader::seconds(std::string_view key,
                           std::optional<double> otherwise) {
  const toml::node* node = find(key, !otherwise.has_value());
  if (node == nullptr) return otherwise.value_or(0);
  const auto* written = node->as_string();
  if (written == nullptr) {
    refuse(key, "must be a duration such as \"55ms\"");
    return 0;
  }
  Result<Nanoseconds> parsed = parse_duration(written->get());
  if (!parsed) {
    refuse(key, fmt::format("is no duration: {}", parsed.error().message()));
    return 0;
  }
  return std::chrono::duration<double>(*parsed).count();
}

double TomlReader::amount(std::string_view key, double otherwise) {
  const toml::node* node = find(key, false);
  if (node == nullptr) return otherwise;
  const std::optional<double> value = node->value<double>();
  if (!node->is_number() || !value.has_value() || !std::isfinite(*value) ||
      *value < 0) {
    refuse(key, "must be a number of at least 0");
    return otherwise;
  }
  return *value;
}

bool TomlReader::boolean(std::string_view key, bool otherwise) {
  const toml::node* node = find(key, false);
  if (node == nullptr) return otherwise;
  if (const auto* value = node->as_boolean(); value != nullptr) {
    return value->get();
  }
  refuse(key, "must be true or false");
  return otherwise;
}

std::string TomlReader::text(std::string_view key,
                             std::optional<std::string_view> otherwise) {
  const toml::node* node = find(key, !otherwise.has_value());
  if (node == nullptr) return std::string(otherwise.value_or(""));
  if (const auto* value = node->as_string(); value != nullptr) {
    return value->get();
  }
  refuse(key, "must be text in quotes");
  return {};
}

std::size_t TomlReader::choice(std::string_view key,
                               std::span<const std::string_view> choices) {
  const std::string chosen = text(key, choices.front());
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (choices[i] == chosen) return i;
  }
  refuse(key, fmt::format("is \"{}\": take one of {}", chosen,
                          fmt::join(choices, ", ")));
  return 0;
}

const toml::table* TomlReader::table(std::string_view key) {
  const toml::node* node = find(key, false);
  if (node == nullptr) return nullptr;
  if (!node->is_table()) refuse(key, "must be a table");
  return node->as_table();
}

const toml::array* TomlReader::tables(std::string_view key) {
  const toml::node* node = find(key, false);
  if (node == nullptr) return nullptr;
  const toml::array* array = node->as_array();
  const bool is_right =
      array != nullptr &&
      (array->empty() || array->is_homogeneous<toml::table>());
  if (!is_right) {
    refuse(key, "must be a list of tables");
    return nullptr;
  }
  return array;
}

Result<void> TomlReader::done() {
  for (const auto& [key, node] : table_) {
    if (known_.contains(key.str())) continue;
    refuse(key.str(),
           fmt::format("is unknown: there are {}", fmt::join(known_, ", ")));
  }
  if (wrong_.has_value()) return *wrong_;
  return {};
}

namespace {

/// The end of the string that begins with `quote` at `text[at]`, or of `text`.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string triple(3, quote);
  const bool is_long = text.substr(at, 3) == triple;
  for (std::size_t i = at + (is_long ? 3 : 1); i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (is_long && text.substr(i, 3) == triple) {
      return i + 3;
    } else if (!is_long && (text[i] == quote || text[i] == '\n')) {
      return i + 1;
    }
  }
  return text.size();
}

/// `text` in ASCII: in comments, other characters are dropped; elsewhere they
/// are an error. toml++ 3.3 has undefined behaviour on some such characters in
/// a malformed text.
Result<std::string> in_ascii(std::string_view text, const std::string& name) {
  std::string ascii(text);
  std::size_t begin = 0;
  while (begin < text.size()) {
    const bool is_comment = text[begin] == '#';
    const bool is_string = text[begin] == '"' || text[begin] == '\'';
    const std::size_t end =
        is_comment  ? std::min(text.find('\n', begin), text.size())
        : is_string ? std::min(end_of_string(text, begin), text.size())
                    : begin + 1;
    for (std::size_t i = begin; i < end; ++i) {
      if (static_cast<unsigned char>(text[i]) < 0x80) continue;
      if (!is_comment) {
        return invalid(
            "{} (line {}) has a character beyond ASCII: write it as "
            "\"\\uXXXX\"",
            name, 1 + std::ranges::count(text.substr(0, i), '\n'));
      }
      ascii[i] = '?';
    }
    begin = end;
  }
  return ascii;
}

}  // namespace

Result<toml::table> parse_toml(std::string_view text, const std::string& name) {
  if (text.size() > kMostBytes) {
    return invalid("{} has {} bytes: more than {} are not read", name,
                   text.size(), kMostBytes);
  }
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // A BOM.
  LEAT_TRY(const std::string ascii, in_ascii(text, name));
  toml::parse_result parsed = toml::parse(ascii, name);
  if (!parsed) {
    return invalid("{} (line {}) is not TOML: {}", name,
                   parsed.error().source().begin.line,
                   parsed.error().description());
  }
  return std::move(parsed).table();
}

}  // namespace leat
