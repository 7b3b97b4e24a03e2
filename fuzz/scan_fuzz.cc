// Reads any bytes as the entries of a scan's log. An entry that is taken is
// written again as it was.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "leat/index/scan_entries.h"

namespace {

void check(std::span<const std::byte> bytes, const std::string& again) {
  const auto texts = std::as_bytes(std::span(again));
  if (!std::equal(bytes.begin(), bytes.end(), texts.begin(), texts.end())) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (const auto objects = leat::unpack_listing(bytes)) {
    check(bytes, leat::pack(*objects));
  }
  if (const auto shard = leat::unpack_shard(bytes)) {
    check(bytes, leat::pack(*shard));
  }
  if (const auto error = leat::unpack_failure(bytes)) {
    check(bytes, leat::pack(*error));
  }
  return 0;
}
