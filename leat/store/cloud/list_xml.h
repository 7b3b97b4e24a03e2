// Pages of listings in XML, which are hostile bytes.
#pragma once
#include <cstddef>
#include <pugixml.hpp>
#include <string_view>

namespace leat {

/// Loads a page. Blanks count, since a key may consist of them. Returns the
/// reason if it is not a page, and otherwise nothing. A tree takes far more
/// memory than its text, so the number of tags is bounded.
std::string_view load_list_xml(std::string_view body, std::ptrdiff_t most_tags,
                               pugi::xml_document& document);

}  // namespace leat
