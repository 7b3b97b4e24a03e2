#include "leat/store/cloud/list_xml.h"

#include <algorithm>

namespace leat {

std::string_view load_list_xml(std::string_view body, std::ptrdiff_t most_tags,
                               pugi::xml_document& document) {
  if (std::ranges::count(body, '<') > most_tags) return "it is too large";
  const bool is_loaded(document.load_buffer(
      body.data(), body.size(),
      pugi::parse_default | pugi::parse_ws_pcdata_single, pugi::encoding_utf8));
  return is_loaded ? "" : "it is not XML";
}

}  // namespace leat
