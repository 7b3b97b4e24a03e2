// Any bytes through the header parser of .npy. An accepted header must describe
// exactly the bytes that are there.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "leat/codec/npy/npy_header.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  // Most inputs would be no .npy at all without this. A heap block of the exact
  // size, so that reading one byte too many is seen.
  const std::string magic = "\x93NUMPY";
  const std::unique_ptr<std::byte[]> file(new std::byte[magic.size() + size]);
  std::memcpy(file.get(), magic.data(), magic.size());
  if (size != 0) std::memcpy(file.get() + magic.size(), data, size);
  const std::span<const std::byte> bytes(file.get(), magic.size() + size);

  const auto header = leat::read_npy_header(bytes);
  if (!header) return 0;
  std::size_t items = header->item_bytes;
  for (const std::int64_t count : header->shape) {
    items *= static_cast<std::size_t>(count);
  }
  if (header->data_offset + items != bytes.size()) std::abort();
  return 0;
}
