#include "leat/pipeline/proven_bytes.h"

#include <fmt/format.h>

#include <utility>

#include "leat/base/hash.h"

namespace leat {
namespace {

constexpr int kTries = 3;

}  // namespace

bool are_right(const Catalogue& catalogue, std::size_t field, SampleId sample,
               std::span<const std::byte> bytes) {
  const auto expected = catalogue.checksum(field, sample);
  return !expected || crc32c(bytes) == *expected;
}

Result<Buffer> read_proven(Store& store, ObjectId object,
                           const Catalogue& catalogue, std::size_t field,
                           SampleId sample, const std::stop_token& stop) {
  const ByteRange range = catalogue.range(field, sample);
  Buffer bytes(range.length_bytes);
  for (int i = 0; i < kTries; ++i) {
    ReadRequest request;
    request.object = object;
    request.offset = range.offset;
    request.into = bytes.span();
    LEAT_TRY_VOID(read_range(store, std::move(request), stop));
    if (are_right(catalogue, field, sample, bytes.span())) return bytes;
  }
  return Error(
      ErrorCode::kCorrupt,
      fmt::format("{} [{}, {}) has not the bytes whose checksum `leat index "
                  "--checksums` kept, and {} more reads did not help: the "
                  "object is damaged, or was written anew; then make the "
                  "checksums again",
                  store.url_of(object.key), range.offset,
                  range.offset + range.length_bytes, kTries));
}

}  // namespace leat
