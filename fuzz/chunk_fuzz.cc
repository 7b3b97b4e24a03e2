// Any bytes through the filters of HDF5's chunks. The first byte says how large
// what they stand for is to be, and how large its items are.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "leat/codec/hdf5/chunk_filters.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  if (size == 0) return 0;
  // A heap block of the exact size, so that reading one byte too many is seen.
  const std::unique_ptr<std::byte[]> copy(new std::byte[size - 1]);
  std::memcpy(copy.get(), data + 1, size - 1);
  const std::span<const std::byte> bytes(copy.get(), size - 1);
  const auto made = leat::undo_lzf(bytes, data[0] * std::uint64_t{16});
  if (made && made->size() != data[0] * std::size_t{16}) std::abort();
  if (leat::undo_shuffle(bytes, data[0] + std::size_t{1}).size() !=
      bytes.size()) {
    std::abort();
  }
  const auto checked = leat::undo_fletcher32(bytes);
  if (checked && checked->size() + 4 != bytes.size()) std::abort();
  return 0;
}
