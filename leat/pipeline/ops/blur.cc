#include "leat/pipeline/ops/blur.h"

#include <cmath>
#include <cstring>
#include <numbers>
#include <vector>

#include "leat/pipeline/ops/kernels.h"

namespace leat {
namespace {

std::vector<double> gaussian(std::uint32_t size, double sigma) {
  std::vector<double> weights(size);
  double sum = 0;
  for (std::uint32_t i = 0; i < size; ++i) {
    const double x = (i - (size - 1) / 2.0) / (std::numbers::sqrt2 * sigma);
    weights[i] = std::exp(-x * x);
    sum += weights[i];
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

/// The place of `at` in [0, size) once the outside is mirrored inwards.
std::size_t mirrored(std::int64_t at, std::int64_t size) {
  if (at < 0) at = -at;
  return static_cast<std::size_t>(at < size ? at : 2 * (size - 1) - at);
}

/// Each row is blended with itself, moved by a pixel for each weight: into
/// `into`, rows `stride` apart.
void blur_across(const ColourView& picture, std::uint32_t size,
                 const WeightQuad* quads, Scratch& scratch, std::uint8_t* into,
                 std::size_t stride) {
  const std::size_t channels = picture.channels;
  const std::size_t row_bytes = picture.width * channels;
  const std::int64_t reach = size / 2;
  std::uint8_t* wide =
      scratch.wide.at_least(row_bytes + size * channels + 2 * kRowSlackBytes);
  std::uint8_t* const middle =
      wide + static_cast<std::size_t>(reach) * channels;
  for (std::uint32_t y = 0; y < picture.height; ++y) {
    const std::uint8_t* row = picture.data + y * picture.stride_bytes;
    std::memcpy(middle, row, row_bytes);
    for (std::int64_t i = 1; i <= reach; ++i) {
      const auto step = static_cast<std::size_t>(i) * channels;
      std::memcpy(middle - step, row + mirrored(-i, picture.width) * channels,
                  channels);
      std::memcpy(
          middle + row_bytes - channels + step,
          row + mirrored(picture.width - 1 + i, picture.width) * channels,
          channels);
    }
    blend_rows({wide, channels, size}, quads, row_bytes, into + y * stride);
  }
}

}  // namespace

void blur(const ColourView& picture, const Blur& blur, Scratch& scratch) {
  const std::size_t row_bytes = std::size_t{picture.width} * picture.channels;
  const std::size_t stride = row_bytes + kRowSlackBytes;
  const std::uint32_t size = blur.kernel[1];
  const std::uint32_t reach = size / 2;
  std::uint8_t* tall = scratch.narrow.at_least(
      stride * (picture.height + 2 * std::size_t{reach}) + kRowSlackBytes);
  const auto row_at = [&](std::size_t y) {
    return tall + (y + reach) * stride;
  };

  AxisWeights& across = scratch.across;
  across.assign_kernel(gaussian(blur.kernel[0], blur.sigma));
  blur_across(picture, blur.kernel[0], across.quads(across.targets()[0]),
              scratch, row_at(0), stride);
  for (std::int64_t i = 1; i <= std::int64_t{reach}; ++i) {
    const auto step = static_cast<std::size_t>(i) * stride;
    std::memcpy(row_at(0) - step, row_at(mirrored(-i, picture.height)),
                row_bytes);
    std::memcpy(row_at(picture.height - 1) + step,
                row_at(mirrored(picture.height - 1 + i, picture.height)),
                row_bytes);
  }
  AxisWeights& down = scratch.down;
  down.assign_kernel(gaussian(size, blur.sigma));
  for (std::uint32_t y = 0; y < picture.height; ++y) {
    blend_rows({tall + y * stride, stride, size}, down.quads(down.targets()[0]),
               row_bytes, picture.data + y * picture.stride_bytes);
  }
}

}  // namespace leat
