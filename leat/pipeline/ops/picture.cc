#include "leat/pipeline/ops/picture.h"

#include <algorithm>
#include <cstring>

#include "leat/base/buffer.h"
#include "leat/pipeline/ops/colour_kernels.h"
#include "leat/pipeline/ops/kernels.h"
#include "leat/pipeline/ops/picture_op.h"

namespace leat {
namespace {

std::size_t row_bytes_of(const ColourView& picture) {
  return std::size_t{picture.width} * picture.channels;
}

std::uint8_t* row_of(const ColourView& picture, std::uint32_t y) {
  return picture.data + y * picture.stride_bytes;
}

/// A picture of that size and `like`'s channels, its bytes in `memory`.
ColourView picture_in(ReusedBytes& memory, std::uint32_t width,
                      std::uint32_t height, const ColourView& like) {
  ColourView made = like;
  made.width = width;
  made.height = height;
  made.stride_bytes = row_bytes_of(made) + kRowSlackBytes;
  made.data = memory.at_least(made.stride_bytes * height);
  return made;
}

void mirror_rows(const ColourView& picture) {
  const std::size_t row_bytes = row_bytes_of(picture);
  std::vector<std::uint8_t> copy(row_bytes);
  for (std::uint32_t y = 0; y < picture.height; ++y) {
    std::uint8_t* row = row_of(picture, y);
    std::memcpy(copy.data(), row, row_bytes);
    mirror_row(copy.data(), picture.width, picture.channels, row);
  }
}

void turn_upside_down(const ColourView& picture) {
  for (std::uint32_t a = 0, b = picture.height - 1; a < b; ++a, --b) {
    std::uint8_t* row = row_of(picture, a);
    std::swap_ranges(row, row + row_bytes_of(picture), row_of(picture, b));
  }
}

class Changer {
 public:
  Changer(const ColourView& picture, Scratch& scratch)
      : picture_(picture), scratch_(scratch) {}

  void apply(const PictureChange& change) {
    std::visit([this](const auto& what) { apply(what); }, change.what);
  }

  const ColourView& picture() const { return picture_; }

 private:
  void apply(const ColourChange& change) {
    change_colours(picture_, std::span(&change, 1));
  }

  void apply(const Warp& change) {
    const ColourView into = picture_in(scratch_.warped[next_], change.width,
                                       change.height, picture_);
    next_ = 1 - next_;
    warp(picture_, change.matrix, change.interpolation, change.fill, into);
    picture_ = into;
  }

  void apply(const Blur& change) { blur(picture_, change, scratch_); }

  void apply(const Edit& change) {
    const auto stride = static_cast<std::ptrdiff_t>(picture_.stride_bytes);
    const PictureValues values{
        .first = reinterpret_cast<std::byte*>(picture_.data),
        .dtype = DType::kUint8,
        .size = {picture_.width, picture_.height},
        .channels = picture_.channels,
        .row_step = stride,
        .column_step = picture_.channels,
        .channel_step = 1};
    change.edit->apply(values.mirrored(change.mirrored));
  }

  void apply(const Mirror& change) {
    if (change.along_x) mirror_rows(picture_);
    if (change.along_y) turn_upside_down(picture_);
  }

  /// Each chain begins with a copy of the picture. The picture may lie in the
  /// scratch, so a chain has one of its own.
  void apply(const Mix& mix) {
    std::vector<float> sum;
    add(picture_, mix.weight, sum);
    Scratch own;
    ReusedBytes memory;
    for (std::size_t i = 0; i < mix.chains.size(); ++i) {
      const ColourView copy =
          picture_in(memory, picture_.width, picture_.height, picture_);
      for (std::uint32_t y = 0; y < copy.height; ++y) {
        std::memcpy(row_of(copy, y), row_of(picture_, y), row_bytes_of(copy));
      }
      add(change_picture(copy, mix.chains[i], own), mix.weights[i], sum);
    }
    const float* from = sum.data();
    for (std::uint32_t y = 0; y < picture_.height; ++y) {
      std::uint8_t* row = row_of(picture_, y);
      for (std::size_t i = 0; i < row_bytes_of(picture_); ++i) {
        row[i] = static_cast<std::uint8_t>(std::clamp(*from++, 0.0F, 255.0F));
      }
    }
  }

  static void add(const ColourView& picture, float weight,
                  std::vector<float>& sum) {
    sum.resize(row_bytes_of(picture) * picture.height);
    float* into = sum.data();
    for (std::uint32_t y = 0; y < picture.height; ++y) {
      const std::uint8_t* row = row_of(picture, y);
      for (std::size_t i = 0; i < row_bytes_of(picture); ++i) {
        *into++ += weight * static_cast<float>(row[i]);
      }
    }
  }

  ColourView picture_;
  Scratch& scratch_;
  std::size_t next_ = 0;  // The next of the two for warped pictures.
};

}  // namespace

bool are_of_single_pixels(std::span<const PictureChange> changes) {
  return std::ranges::all_of(changes, [](const PictureChange& change) {
    const auto* colour = std::get_if<ColourChange>(&change.what);
    return colour != nullptr && is_of_single_pixels(colour->kind);
  });
}

void change_colours(const ColourView& picture,
                    std::span<const PictureChange> changes) {
  for (const PictureChange& change : changes) {
    change_colours(picture, std::span(&std::get<ColourChange>(change.what), 1));
  }
}

ColourView change_picture(const ColourView& picture,
                          std::span<const PictureChange> changes,
                          Scratch& scratch) {
  Changer changer(picture, scratch);
  for (const PictureChange& change : changes) changer.apply(change);
  return changer.picture();
}

}  // namespace leat
