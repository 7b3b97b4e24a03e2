#include "leat/codec/json/json_rows.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/errors.h"
#include "leat/codec/json/json_value.h"

namespace leat {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kEach = "[*]";

/// Null if there is nothing.
const Json* find(const Json& from, const JsonPath& path) {
  const Json* at = &from;
  for (const JsonStep& step : path) {
    if (const auto* index = std::get_if<std::uint64_t>(&step)) {
      if (!at->is_array() || *index >= at->size()) return nullptr;
      at = &(*at)[*index];
    } else {
      if (!at->is_object()) return nullptr;
      const auto found = at->find(std::get<std::string>(step));
      if (found == at->end()) return nullptr;
      at = &*found;
    }
  }
  return at;
}

Error nothing_at(const JsonPath& path) {
  return not_found("the document has no {}", to_string(path));
}

/// A line without numbers is not a row.
std::optional<JsonRow> row_of(const Json& value) {
  if (value.is_number()) return JsonRow{value.get<double>()};
  if (!value.is_array()) return std::nullopt;
  JsonRow row;
  for (const Json& number : value) {
    if (!number.is_number()) return std::nullopt;
    row.push_back(number.get<double>());
  }
  return row;
}

Result<std::vector<JsonRow>> rows_at(const Json& document,
                                     const JsonRowsPath& path) {
  const Json* list = find(document, path.list);
  if (list == nullptr) return nothing_at(path.list);
  if (!list->is_array()) {
    return corrupt("{} is no list", to_string(path.list));
  }
  std::vector<JsonRow> rows;
  std::size_t numbers = 0;
  for (const Json& one : *list) {
    const Json* value = path.of_each ? find(one, *path.of_each) : &one;
    if (value == nullptr) return nothing_at(*path.of_each);
    std::optional<JsonRow> row = row_of(*value);
    if (!row) {
      return corrupt("{} holds what is no row of numbers, at {}",
                     to_string(path.list), rows.size());
    }
    numbers += row->size();
    rows.push_back(*std::move(row));
  }
  if (numbers > kMostJsonNumbers) {
    return corrupt("{} has more than {} numbers", to_string(path.list),
                   kMostJsonNumbers);
  }
  return rows;
}

}  // namespace

Result<JsonRowsPath> parse_json_rows_path(std::string_view text) {
  const std::size_t each = text.find(kEach);
  JsonRowsPath path;
  LEAT_TRY(path.list, parse_json_path(text.substr(0, each)));
  if (each == std::string_view::npos) return path;
  std::string_view rest = text.substr(each + kEach.size());
  if (rest.starts_with('.')) rest.remove_prefix(1);
  LEAT_TRY(path.of_each, parse_json_path(rest));
  return path;
}

Result<std::vector<std::vector<JsonRow>>> find_json_rows(
    std::span<const std::byte> document, std::span<const JsonRowsPath> paths) {
  if (document.size() > kMostRowsDocumentBytes) {
    return corrupt("a document of {} bytes, where annotations have at most {}",
                   document.size(), kMostRowsDocumentBytes);
  }
  const std::string_view text = as_text(document);
  const Json json = Json::parse(text.begin(), text.end(), nullptr,
                                /*allow_exceptions=*/false);
  if (json.is_discarded()) return corrupt("this is no JSON");
  std::vector<std::vector<JsonRow>> all;
  for (const JsonRowsPath& path : paths) {
    LEAT_TRY(std::vector<JsonRow> rows, rows_at(json, path));
    all.push_back(std::move(rows));
  }
  return all;
}

}  // namespace leat
