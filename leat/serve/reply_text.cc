#include "leat/serve/reply_text.h"

#include <fmt/format.h>

#include <iterator>

namespace leat {

std::string_view reason_of(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 409:
      return "Conflict";
    case 411:
      return "Length Required";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Payload Too Large";
    case 416:
      return "Range Not Satisfiable";
    case 429:
      return "Too Many Requests";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    default:
      return "Status";
  }
}

void append_head(std::string& out, const ReplyHead& head) {
  const auto end = std::back_inserter(out);
  fmt::format_to(end, "HTTP/1.1 {} {}\r\n", head.status,
                 reason_of(head.status));
  if (head.content_length) {
    fmt::format_to(end, "Content-Length: {}\r\n", *head.content_length);
  }
  if (!head.keeps_alive) out += "Connection: close\r\n";
  out += head.headers;
  out += "\r\n";
}

}  // namespace leat
