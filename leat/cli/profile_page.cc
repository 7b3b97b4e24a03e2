#include "leat/cli/profile_page.h"

#include <nlohmann/json.hpp>
#include <string_view>

namespace leat {

/// The text of profile_page.html: made from it by the build.
extern const std::string_view kProfilePage;

std::string profile_page(const nlohmann::ordered_json& report) {
  constexpr std::string_view kPlace = "@REPORT@";
  std::string json = report.dump(
      -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  // "</script>" in a text must not end the script that it stands in.
  for (std::size_t at = json.find('<'); at != std::string::npos;
       at = json.find('<', at)) {
    json.replace(at, 1, "\\u003c");
  }
  std::string page(kProfilePage);
  return page.replace(page.find(kPlace), kPlace.size(), json);
}

}  // namespace leat
