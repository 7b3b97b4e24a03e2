#include "leat/cli/profile_page.h"

#include <nlohmann/json.hpp>
#include <string_view>

namespace leat {

// Texts of files, which the build makes: profile_page_html.cc.in.
extern const std::string_view kProfilePage;
extern const std::string_view kProfileSheet;
extern const std::string_view kProfileScript;

namespace {

void fill(std::string& page, std::string_view place, std::string_view text) {
  page.replace(page.find(place), place.size(), text);
}

}  // namespace

std::string profile_page(const nlohmann::ordered_json& report) {
  std::string json = report.dump(
      -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  // "</script>" in a text must not end the script that it stands in.
  for (std::size_t at = json.find('<'); at != std::string::npos;
       at = json.find('<', at)) {
    json.replace(at, 1, "\\u003c");
  }
  std::string page(kProfilePage);
  // From the end, so that no text is taken for a place.
  fill(page, "@SCRIPT@", kProfileScript);
  fill(page, "@REPORT@", json);
  fill(page, "@SHEET@", kProfileSheet);
  return page;
}

}  // namespace leat
