#include "leat/pipeline/ops/erase.h"

#include <cmath>
#include <numbers>

#include "leat/base/hash.h"
#include "leat/pipeline/ops/small_floats.h"

namespace leat {
namespace {

constexpr int kEraseTries = 10;

/// Normal noise, mean 0 and deviation 1, as a function of a seed.
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : seed_(seed) {}

  /// By Box and Muller, whose method makes two at a time.
  float next() {
    if (has_other_) {
      has_other_ = false;
      return other_;
    }
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    const double angle = 2 * std::numbers::pi * uniform();
    other_ = static_cast<float>(radius * std::sin(angle));
    has_other_ = true;
    return static_cast<float>(radius * std::cos(angle));
  }

 private:
  double uniform() {
    const std::uint64_t bits = mix64(seed_ + count_++ * 0x9e3779b97f4a7c15ULL);
    return static_cast<double>(bits >> 11) * 0x1p-53;
  }

  const std::uint64_t seed_;
  std::uint64_t count_ = 0;
  float other_ = 0;
  bool has_other_ = false;
};

float to_single(double value) { return static_cast<float>(value); }

template <class Item, class ToItem>
void put(const ArrayErase& erase, const PixelFormat& format, PixelSize size,
         std::span<std::byte> out, const ToItem& to_item) {
  auto* const items = reinterpret_cast<Item*>(out.data());
  const bool is_chw = format.layout == PixelLayout::kChw;
  const std::size_t pixel_step = is_chw ? 1 : format.channels;
  const std::size_t channel_step =
      is_chw ? std::size_t{size.width} * size.height : 1;
  Noise noise(erase.noise_seed);
  for (std::uint32_t c = 0; c < format.channels; ++c) {
    const std::size_t which = erase.value.size() == 1 ? 0 : c;
    for (std::uint32_t y = 0; y < erase.part.height; ++y) {
      const std::size_t first =
          (std::size_t{erase.part.y} + y) * size.width + erase.part.x;
      Item* into = items + c * channel_step + first * pixel_step;
      for (std::uint32_t x = 0; x < erase.part.width; ++x, into += pixel_step) {
        *into =
            to_item(erase.value.empty() ? noise.next() : erase.value[which]);
      }
    }
  }
}

}  // namespace

std::optional<Rect> draw_erasing(const RandomErasingOp& op, PixelSize image,
                                 Draws& draws) {
  if (draws.uniform() >= op.p) return std::nullopt;
  const double area = static_cast<double>(image.width) * image.height;
  for (int i = 0; i < kEraseTries; ++i) {
    const double target = area * draws.uniform(op.scale[0], op.scale[1]);
    const double aspect =
        std::exp(draws.uniform(std::log(op.ratio[0]), std::log(op.ratio[1])));
    const double height = std::nearbyint(std::sqrt(target * aspect));
    const double width = std::nearbyint(std::sqrt(target / aspect));
    if (height >= image.height || width >= image.width) continue;
    const auto w = static_cast<std::uint32_t>(width);
    const auto h = static_cast<std::uint32_t>(height);
    const std::uint32_t y = draws.below(image.height - h + 1);
    const std::uint32_t x = draws.below(image.width - w + 1);
    return Rect{x, y, w, h};
  }
  return std::nullopt;
}

void erase_part(const ArrayErase& erase, const PixelFormat& format,
                PixelSize size, std::span<std::byte> out) {
  switch (format.dtype) {
    case DType::kFloat16:
      return put<std::uint16_t>(erase, format, size, out, [](double value) {
        return to_float16(to_single(value));
      });
    case DType::kBfloat16:
      return put<std::uint16_t>(erase, format, size, out, [](double value) {
        return to_bfloat16(to_single(value));
      });
    case DType::kFloat64:
      return put<double>(erase, format, size, out,
                         [](double value) { return value; });
    default:
      return put<float>(erase, format, size, out, to_single);
  }
}

}  // namespace leat
