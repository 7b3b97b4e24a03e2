#include "leat/store/cloud/json_text.h"

#include <algorithm>

namespace leat {
namespace {

// A full page of a listing has 1,000 entries of a few objects and lists each.
constexpr std::ptrdiff_t kMostNodes = 200'000;

}  // namespace

bool has_too_many_nodes(std::string_view text) {
  return std::ranges::count_if(
             text, [](char c) { return c == '{' || c == '['; }) > kMostNodes;
}

nlohmann::json parse_json_text(std::string_view text) {
  if (has_too_many_nodes(text)) return nlohmann::json::value_t::discarded;
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

const nlohmann::json* json_member(const nlohmann::json& object,
                                  std::string_view name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

std::string json_text(const nlohmann::json& object, std::string_view name) {
  const nlohmann::json* const found = json_member(object, name);
  return found != nullptr && found->is_string() ? found->get<std::string>()
                                                : std::string();
}

}  // namespace leat
