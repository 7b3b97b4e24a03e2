// Any bytes as the HTTP/1.1 reply of a server. Nothing is written past the
// place that a body is for, and a reply means the same however the network cuts
// it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/store/http/reply_reader.h"

namespace {

using Step = leat::ReplyReader::Step;

constexpr std::size_t kCanaryBytes = 16;
constexpr std::byte kCanary{0x5a};

void require(bool condition) {
  if (!condition) std::abort();
}

/// The outcome of the reply in `text`, which comes `piece_bytes` at a time.
std::string read(std::string_view text, std::size_t piece_bytes,
                 std::size_t place_bytes) {
  std::vector<std::byte> memory(place_bytes + kCanaryBytes, kCanary);
  leat::HttpRequest request{.url = "http://host/x",
                            .into = std::span(memory).first(place_bytes),
                            .most_body_bytes = 4096};
  leat::ReplySink sink;
  sink.open(request);
  leat::ReplyReader reader;
  reader.open(sink);
  Step step = Step::kMore;
  while (step == Step::kMore && !text.empty()) {
    const std::string_view piece = text.substr(0, piece_bytes);
    const std::span<std::byte> place = reader.place();
    if (place.empty()) {
      step = reader.take(piece);
      text.remove_prefix(piece.size());
    } else {
      const std::size_t count = std::min(place.size(), piece.size());
      std::ranges::copy(leat::as_bytes(piece.substr(0, count)), place.begin());
      step = reader.placed(count);
      text.remove_prefix(count);
    }
  }
  if (step == Step::kMore) step = reader.end();
  for (std::size_t i = place_bytes; i < memory.size(); ++i) {
    require(memory[i] == kCanary);
  }
  if (step == Step::kBroken) return "broken";
  const auto reply = sink.outcome();
  if (!reply) return reply.error().message();
  require(step == Step::kDone);
  require(reply->body.size() <= 4096);
  std::string said = std::to_string(reply->status) + '\n' + reply->body;
  said += reply->header("content-length");
  if (place_bytes != 0) said += leat::as_text(request.into);
  return said;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  if (size < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2,
                              size - 2);
  const std::size_t place_bytes = data[1];
  const std::string whole = read(text, size, place_bytes);
  const std::string pieces = read(text, data[0] % 64 + 1, place_bytes);
  require(whole == pieces);
  return 0;
}
