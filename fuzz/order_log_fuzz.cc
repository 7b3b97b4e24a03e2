// The payload of an entry of an order log: any bytes are an entry or an error,
// and an entry is the same once it is written and read again.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "leat/base/buffer.h"
#include "leat/base/check.h"
#include "leat/base/hash.h"
#include "leat/engine/order_log/entries.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const auto payload = std::as_bytes(std::span(data, size));
  // A fuzzer would not find the CRC, so it is given.
  const auto entry =
      leat::parse_entry({.length = static_cast<std::uint32_t>(size),
                         .crc = leat::crc32c(payload)},
                        payload);
  if (!entry) {
    LEAT_CHECK(!entry.error().message().empty());
    return 0;
  }
  std::string bytes;
  leat::append_entry(*entry, bytes);
  const auto again = leat::as_bytes(bytes);
  const auto frame = leat::parse_frame(again.first(leat::kOrderLogFrame));
  LEAT_CHECK(frame.has_value());
  const auto same =
      leat::parse_entry(*frame, again.subspan(leat::kOrderLogFrame));
  LEAT_CHECK(same.has_value());
  LEAT_CHECK(*same == *entry);
  return 0;
}
