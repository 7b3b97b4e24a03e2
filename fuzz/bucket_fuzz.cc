// Any bytes that strangers send to `leat bucket`: request targets, ranges,
// chunked bodies; and the words that faults and latencies are written in.
// Nothing may crash, no range may leave its object, no key its folder, and a
// body means the same however the network cuts it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>

#include "leat/base/buffer.h"
#include "leat/bucket/byte_range.h"
#include "leat/bucket/chunked_body.h"
#include "leat/bucket/fault.h"
#include "leat/bucket/folder.h"
#include "leat/bucket/latency.h"
#include "leat/bucket/s3_request.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void read_range(std::string_view text, std::uint64_t object_bytes) {
  const auto answer = leat::parse_range(text, object_bytes);
  if (const auto* range = std::get_if<leat::RequestedRange>(&answer)) {
    require(range->size_bytes > 0 && range->offset < object_bytes &&
            range->size_bytes <= object_bytes - range->offset);
  }
}

std::string decode(std::string_view text, std::size_t piece_bytes) {
  std::string bytes;
  leat::ChunkedBody body([&bytes](std::span<const std::byte> piece) {
    bytes += leat::as_text(piece);
  });
  bool is_good = true;
  for (std::size_t at = 0; at < text.size(); at += piece_bytes) {
    is_good = body.put(leat::as_bytes(text.substr(at, piece_bytes)));
  }
  require(body.size_bytes() == bytes.size() && bytes.size() <= text.size());
  require(is_good || !body.is_whole());
  return bytes + (is_good ? '+' : '-') + (body.is_whole() ? '+' : '-');
}

void read_target(std::string_view text) {
  static const leat::Folder folder = *leat::Folder::open("/");
  const auto target = leat::parse_target(text);
  if (!target) return;
  (void)leat::operation_of("GET", *target, leat::CopySource::kAbsent);
  (void)leat::operation_of("POST", *target, leat::CopySource::kPresent);
  const auto path = folder.object_path(target->bucket, target->key);
  if (!path) return;
  require((*path + '/').find("/../") == std::string::npos &&
          (*path + '/').find("/./") == std::string::npos &&
          path->find('\0') == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  if (size < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2,
                              size - 2);
  switch (data[0] % 4) {
    case 0:
      for (const std::uint64_t object :
           {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{data[1]} << 20,
            std::uint64_t{UINT64_MAX}}) {
        read_range("bytes=" + std::string(text), object);
      }
      break;
    case 1:
      require(decode(text, size) == decode(text, data[1] % 16 + 1));
      break;
    case 2:
      read_target('/' + std::string(text));
      break;
    default:
      (void)leat::parse_fault_script(text);
      (void)leat::parse_fault_rate(text);
      (void)leat::parse_latency(text);
  }
  return 0;
}
