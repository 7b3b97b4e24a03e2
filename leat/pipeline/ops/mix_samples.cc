#include "leat/pipeline/ops/mix_samples.h"

#include <algorithm>
#include <array>
#include <vector>

#include "leat/base/check.h"
#include "leat/pipeline/ops/mix_kernels.h"

namespace leat {
namespace {

// Two of them fit the first cache of every core: a sample is read there as the
// other of its follower, and a moment later as its own.
constexpr std::size_t kBlockBytes = std::size_t{8} << 10;

/// From the last sample to the first: each is written when its follower has
/// taken of it. The last one's block is kept for the first.
template <class T, class Mix>
void blend_blocks(std::span<std::byte> batch, std::size_t samples,
                  const Mix& mix) {
  const std::size_t count = batch.size() / sizeof(T) / samples;
  auto* const first = reinterpret_cast<T*>(batch.data());
  std::array<T, kBlockBytes / sizeof(T)> kept;
  for (std::size_t at = 0; at < count; at += kept.size()) {
    const std::size_t size = std::min(kept.size(), count - at);
    T* own = first + (samples - 1) * count + at;
    std::copy_n(own, size, kept.data());
    for (; own != first + at; own -= count) mix(own - count, size, own);
    mix(kept.data(), size, own);
  }
}

template <class T, class Share>
void blend(std::span<std::byte> batch, std::size_t samples, double share,
           void (*mix)(const T*, std::size_t, MixShares<Share>, T*)) {
  const MixShares<Share> shares{static_cast<Share>(share),
                                static_cast<Share>(1 - share)};
  blend_blocks<T>(batch, samples,
                  [&](const T* other, std::size_t count, T* own) {
                    mix(other, count, shares, own);
                  });
}

void copy_part(const std::byte* from, std::size_t from_stride,
               const PartOfRows& part, std::byte* into,
               std::size_t into_stride) {
  for (std::size_t row = 0; row < part.rows; ++row) {
    std::copy_n(from + row * from_stride, part.bytes, into + row * into_stride);
  }
}

}  // namespace

bool can_blend(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBfloat16 ||
         dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

void blend_samples(std::span<std::byte> batch, std::size_t samples, DType dtype,
                   double share) {
  LEAT_CHECK(can_blend(dtype));
  if (batch.empty()) return;
  LEAT_CHECK(batch.size() % (samples * size_bytes_of(dtype)) == 0);
  switch (dtype) {
    case DType::kFloat16:
      return blend(batch, samples, share, mix_float16);
    case DType::kBfloat16:
      return blend(batch, samples, share, mix_bfloat16);
    case DType::kFloat32:
      return blend(batch, samples, share, mix_float32);
    default:
      return blend(batch, samples, share, mix_float64);
  }
}

void paste_samples(std::span<std::byte> batch, const PlanesOfRows& shape,
                   const PartOfRows& part) {
  const std::size_t plane_bytes = shape.rows * shape.row_bytes;
  const std::size_t sample_bytes = shape.planes * plane_bytes;
  if (batch.empty() || part.rows == 0 || part.bytes == 0) return;
  LEAT_CHECK(batch.size() % sample_bytes == 0);
  LEAT_CHECK(part.first_row + part.rows <= shape.rows &&
             part.first_byte + part.bytes <= shape.row_bytes);
  const std::size_t stride = shape.row_bytes;
  std::vector<std::byte> kept(part.rows * part.bytes);
  for (std::size_t plane = 0; plane < shape.planes; ++plane) {
    std::byte* const first = batch.data() + plane * plane_bytes +
                             part.first_row * stride + part.first_byte;
    std::byte* own = first + (batch.size() - sample_bytes);
    copy_part(own, stride, part, kept.data(), part.bytes);
    for (; own != first; own -= sample_bytes) {
      copy_part(own - sample_bytes, stride, part, own, stride);
    }
    copy_part(kept.data(), part.bytes, part, own, stride);
  }
}

}  // namespace leat
