// Any bytes that strangers send to our servers, up to the request, as HTTP/1.1.
// A head has an end, and a request means the same however the network cuts it.
#include <boost/asio/buffer.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "leat/serve/request_parser.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

/// A parser's events for some bytes, as a text.
struct Heard final : leat::RequestEvents {
  void on_head() override { ++heads; }
  void on_body(std::span<const std::byte> piece) override {
    require(heads == 1);
    body += leat::as_text(piece);
  }
  int heads = 0;
  std::string body;
};

/// The request in `text`, which comes `piece_bytes` at a time; empty if it is
/// not whole, or none.
std::string read(std::string_view text, std::size_t piece_bytes) {
  Heard heard;
  leat::RequestParser parser(heard);
  std::size_t begin = 0;
  std::size_t end = 0;
  boost::beast::error_code failure;
  while (!parser.is_done()) {
    if (end == text.size()) return {};
    end = std::min(text.size(), end + piece_bytes);
    while (begin < end && !parser.is_done()) {
      const std::size_t used = parser.put(
          boost::asio::buffer(text.data() + begin, end - begin), failure);
      require(used <= end - begin);
      begin += used;
      if (failure || used == 0) break;
    }
    if (failure && failure != boost::beast::http::error::need_more) return {};
  }
  require(heard.heads == 1 && heard.body.size() <= text.size());
  const leat::RequestHead& head = parser.head();
  std::size_t head_bytes = head.method.size() + head.target.size();
  std::string request(head.method);
  request.append(1, '\n').append(head.target);
  for (const auto& [name, value] : head.headers) {
    request.append(1, '\n').append(name).append(1, '\n').append(value);
    head_bytes += name.size() + value.size();
    require(head.header(name).size() <= head_bytes);
  }
  require(head_bytes <= leat::RequestParser::kMostHeadBytes);
  return request + "\n\n" + heard.body + "\n\n" + std::to_string(begin);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  if (size < 1) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1,
                              size - 1);
  const std::string whole = read(text, size);
  const std::string pieces = read(text, data[0] % 64 + 1);
  require(whole == pieces);
  return 0;
}
