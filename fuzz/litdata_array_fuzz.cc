// Any bytes through the parser of arrays in chunks of LitData. An accepted head
// must describe exactly the bytes that are there.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "leat/codec/litdata/litdata_array.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  // A heap block of the exact size, so that reading one byte too many is seen.
  const std::unique_ptr<std::byte[]> copy(new std::byte[size]);
  if (size != 0) std::memcpy(copy.get(), data, size);
  const auto header = leat::read_litdata_array({copy.get(), size});
  if (!header) return 0;
  bool is_empty = false;
  std::size_t items = header->item_bytes;
  for (const std::int64_t count : header->shape) {
    is_empty |= count == 0;
    items *= static_cast<std::size_t>(count);
  }
  if (header->data_offset + (is_empty ? 0 : items) != size) std::abort();
  return 0;
}
