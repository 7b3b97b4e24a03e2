// A report as a page to look at: docs/howto/where-does-it-wait.md.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace leat {

/// One HTML page that holds the report and draws it. It needs nothing from
/// anywhere, and may load nothing: its own policy forbids it.
std::string profile_page(const nlohmann::ordered_json& report);

}  // namespace leat
