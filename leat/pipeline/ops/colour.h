// Changes of colour, of whole pictures: brightness, contrast, saturation, hue.
// The arithmetic is that of Pillow's ImageEnhance and of its HSV, byte by byte.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace leat {

/// In torchvision's order of arguments.
enum class ColourKind : std::uint8_t {
  kBrightness,  ///< Away from black.
  kContrast,    ///< Away from the picture's mean grey.
  kSaturation,  ///< Away from each pixel's own grey.
  kHue,         ///< Around the colour circle.
};
inline constexpr std::size_t kColourKinds = 4;

struct ColourChange {
  ColourKind kind = ColourKind::kBrightness;
  double amount = 1;  ///< A factor; of hue: of a full circle, -0.5 to 0.5.
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
