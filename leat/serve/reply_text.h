// The head of a reply as bytes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace leat {

/// "Not Found" for 404; "Status" for one that has no name here.
std::string_view reason_of(int status);

struct ReplyHead {
  int status = 200;
  std::string_view headers;  ///< "Name: value\r\n" each.
  std::optional<std::uint64_t> content_length;
  bool keeps_alive = true;
};

/// The status line, the headers and the empty line, appended to `out`.
void append_head(std::string& out, const ReplyHead& head);

}  // namespace leat
