// Any bytes as a number and as UTF-8. A number that is read must read back as
// itself.

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "leat/base/buffer.h"
#include "leat/codec/text/text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::unique_ptr<std::byte[]> text(new std::byte[size]);
  if (size != 0) std::memcpy(text.get(), data, size);
  const std::span<const std::byte> bytes(text.get(), size);

  if (const auto whole = leat::parse_whole_number(bytes)) {
    const std::string again = fmt::format("{}", *whole);
    if (*leat::parse_whole_number(leat::as_bytes(again)) != *whole) {
      std::abort();
    }
  }
  if (const auto real = leat::parse_real_number(bytes);
      real && !std::isnan(*real)) {
    const std::string again = fmt::format("{}", *real);
    if (*leat::parse_real_number(leat::as_bytes(again)) != *real) std::abort();
  }
  const auto invalid = leat::first_invalid_utf8(leat::as_text(bytes));
  if (invalid && *invalid >= size) std::abort();
  if (leat::quoted(bytes).size() > 200) std::abort();
  return 0;
}
