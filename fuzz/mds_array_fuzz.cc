// Any bytes through the parser of arrays in MDS shards. An accepted head must
// describe exactly the bytes that are there.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "leat/codec/mds/mds_array.h"

namespace {

void check(std::span<const std::byte> bytes,
           const std::optional<leat::MdsItems>& type) {
  const auto header = leat::read_mds_array(bytes, type);
  if (!header) return;
  std::size_t items = header->item_bytes;
  for (const std::int64_t count : header->shape) {
    items *= static_cast<std::size_t>(count);
  }
  if (header->data_offset + items != bytes.size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  // A heap block of the exact size, so that reading one byte too many is seen.
  const std::unique_ptr<std::byte[]> copy(new std::byte[size]);
  if (size != 0) std::memcpy(copy.get(), data, size);
  const std::span<const std::byte> bytes(copy.get(), size);
  check(bytes, std::nullopt);
  check(bytes, leat::mds_items_named("int16"));
  return 0;
}
