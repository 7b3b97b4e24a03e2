#include "leat/serve/http_service.h"

#include <algorithm>

namespace leat {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; }

}  // namespace

bool equal_in_any_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view RequestHead::header(std::string_view name) const {
  for (const auto& [its_name, value] : headers) {
    if (equal_in_any_case(its_name, name)) return value;
  }
  return {};
}

}  // namespace leat
