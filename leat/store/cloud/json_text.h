// Members of JSON that others wrote. Nothing here throws.
#pragma once
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace leat {

/// The JSON in `text`; discarded, and so neither object nor array, if it is not
/// JSON or has more objects and arrays than a full page of a listing: a tree
/// takes far more memory than its text.
nlohmann::json parse_json_text(std::string_view text);

/// True if that is why parse_json_text() discards it.
bool has_too_many_nodes(std::string_view text);

/// Null if `object` is not an object, or has no member of that name.
const nlohmann::json* json_member(const nlohmann::json& object,
                                  std::string_view name);

/// Empty if there is no such member, or if it is not a text.
std::string json_text(const nlohmann::json& object, std::string_view name);

}  // namespace leat
