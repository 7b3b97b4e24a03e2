// Changes of colour, for whole pictures. The arithmetic is that of Pillow's
// ImageEnhance and ImageOps and of its HSV, byte by byte.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace leat {

/// The first four are those of ColorJitter, in its order of arguments.
enum class ColourKind : std::uint8_t {
  kBrightness,  ///< Away from black.
  kContrast,    ///< Away from the picture's mean grey.
  kSaturation,  ///< Away from each pixel's own grey.
  kHue,         ///< Around the colour circle.
  kGrey,        ///< Each pixel to its grey; the picture keeps its channels.
  kPosterize,   ///< Only the highest bits are kept.
  kSolarize,    ///< Values from a threshold on are inverted.
  kInvert,
  kAutoContrast,  ///< Each channel is stretched to 0 … 255.
  kEqualize,      ///< Each channel's histogram is made flat.
  kSharpness,     ///< Away from the picture smoothed by 3 x 3 pixels.
};
inline constexpr std::size_t kJitterKinds = 4;

/// Whether the new value of a pixel depends on that pixel alone, and not on the
/// rest of the picture.
constexpr bool is_of_single_pixels(ColourKind kind) {
  return kind != ColourKind::kContrast && kind != ColourKind::kAutoContrast &&
         kind != ColourKind::kEqualize && kind != ColourKind::kSharpness;
}

struct ColourChange {
  ColourKind kind = ColourKind::kBrightness;
  /// A factor; for hue: a share of a full circle, -0.5 to 0.5; for posterize:
  /// bits, 0 to 8; for solarize: the threshold, 0 to 255.
  double amount = 1;
  friend bool operator==(const ColourChange&, const ColourChange&) = default;
};

/// A whole picture of interleaved bytes: RGB or grey.
struct ColourView {
  std::uint8_t* data = nullptr;
  std::size_t stride_bytes = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t channels = 3;
};

/// Makes the changes one after another, each rounded to bytes. Grey has neither
/// saturation nor hue.
void change_colours(const ColourView& picture,
                    std::span<const ColourChange> changes);

}  // namespace leat
