#include "leat/pipeline/ops/colour.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "leat/pipeline/ops/colour_kernels.h"
#include "leat/pipeline/ops/kernels.h"

namespace leat {
namespace {

using Table = std::array<std::uint8_t, 256>;

template <class ChangeRow>
void for_each_row(const ColourView& picture, const ChangeRow& change) {
  for (std::uint32_t y = 0; y < picture.height; ++y) {
    change(picture.data + y * picture.stride_bytes);
  }
}

template <class ChangeByte>
void change_bytes(const ColourView& picture, const ChangeByte& change) {
  const std::size_t row_bytes = std::size_t{picture.width} * picture.channels;
  for_each_row(picture, [&](std::uint8_t* row) {
    for (std::size_t i = 0; i < row_bytes; ++i) row[i] = change(row[i]);
  });
}

/// The row itself if it is grey; else its grey, in `memory`.
const std::uint8_t* grey_row(const ColourView& picture, const std::uint8_t* row,
                             std::vector<std::uint8_t>& memory) {
  if (picture.channels == 1) return row;
  memory.resize(picture.width);
  grey_of_rgb(row, picture.width, memory.data());
  return memory.data();
}

/// The mean of the picture in grey, rounded.
int mean_grey(const ColourView& picture) {
  std::uint64_t sum = 0;
  std::vector<std::uint8_t> memory;
  for_each_row(picture, [&](const std::uint8_t* row) {
    const std::uint8_t* grey = grey_row(picture, row, memory);
    std::uint32_t of_row = 0;
    for (std::uint32_t x = 0; x < picture.width; ++x) of_row += grey[x];
    sum += of_row;
  });
  const double pixels = static_cast<double>(picture.width) * picture.height;
  return static_cast<int>(std::lround(static_cast<double>(sum) / pixels));
}

Table table_of(const auto& value_of) {
  Table table;
  for (int i = 0; i < 256; ++i) {
    table[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(value_of(i));
  }
  return table;
}

using Histogram = std::array<std::uint32_t, 256>;

/// The result of Pillow's autocontrast for each value: in double, cut off.
Table stretched(const Histogram& histogram) {
  const auto is_there = [](std::uint32_t count) { return count != 0; };
  const auto low = static_cast<int>(std::ranges::find_if(histogram, is_there) -
                                    histogram.begin());
  int high = 255;
  while (high > 0 && histogram[static_cast<std::size_t>(high)] == 0) --high;
  if (high <= low) return table_of([](int i) { return i; });
  const double scale = 255.0 / (high - low);
  const double offset = -low * scale;
  return table_of([&](int i) {
    return std::clamp(static_cast<int>(i * scale + offset), 0, 255);
  });
}

/// The result of Pillow's equalize for each value.
Table flattened(const Histogram& histogram) {
  std::uint64_t sum = 0;
  std::uint64_t last = 0;
  for (const std::uint32_t count : histogram) {
    sum += count;
    if (count != 0) last = count;
  }
  const std::uint64_t step = (sum - last) / 255;
  if (step == 0) return table_of([](int i) { return i; });
  std::uint64_t reached = step / 2;
  return table_of([&](int i) {
    const std::uint64_t value = std::min<std::uint64_t>(reached / step, 255);
    reached += histogram[static_cast<std::size_t>(i)];
    return value;
  });
}

/// Looks each channel up in a table that is made of its histogram.
template <std::size_t kChannels>
void look_up_by(const ColourView& picture, Table (*make)(const Histogram&)) {
  const std::size_t row_bytes = std::size_t{picture.width} * kChannels;
  std::array<Histogram, kChannels> histograms{};
  for_each_row(picture, [&](const std::uint8_t* row) {
    for (std::size_t i = 0; i < row_bytes; i += kChannels) {
      for (std::size_t c = 0; c < kChannels; ++c) ++histograms[c][row[i + c]];
    }
  });
  std::array<Table, kChannels> tables;
  for (std::size_t c = 0; c < kChannels; ++c) tables[c] = make(histograms[c]);
  for_each_row(picture, [&](std::uint8_t* row) {
    for (std::size_t i = 0; i < row_bytes; i += kChannels) {
      for (std::size_t c = 0; c < kChannels; ++c) {
        row[i + c] = tables[c][row[i + c]];
      }
    }
  });
}

void look_up_by(const ColourView& picture, Table (*make)(const Histogram&)) {
  return picture.channels == 3 ? look_up_by<3>(picture, make)
                               : look_up_by<1>(picture, make);
}

/// Pillow's SMOOTH: the pixel counts 5, its eight neighbours 1 each; the border
/// stays. Rounded, never between two: 13 is odd. `columns` is memory.
void smooth_row(const std::uint8_t* above, const std::uint8_t* row,
                const std::uint8_t* below, std::size_t row_bytes,
                std::size_t channels, std::vector<std::uint32_t>& columns,
                std::uint8_t* into) {
  columns.resize(row_bytes);
  std::uint32_t* column = columns.data();
  for (std::size_t i = 0; i < row_bytes; ++i) {
    column[i] = static_cast<std::uint32_t>(above[i]) + row[i] + below[i];
  }
  for (std::size_t i = channels; i + channels < row_bytes; ++i) {
    const std::uint32_t sum =
        column[i - channels] + column[i] + column[i + channels] + 4u * row[i];
    // (2 * sum + 13) / 26, by a factor in 22 bits: exact for so small numbers.
    into[i] = static_cast<std::uint8_t>(((2 * sum + 13) * 161320u) >> 22);
  }
}

void sharpen(const ColourView& picture, float amount) {
  if (picture.height < 3 || picture.width < 3) return;
  const std::size_t row_bytes = std::size_t{picture.width} * picture.channels;
  // Rows as they were before they were changed.
  const std::uint8_t* first = picture.data;
  std::vector<std::uint8_t> above(first, first + row_bytes);
  std::vector<std::uint8_t> before;
  std::vector<std::uint8_t> smoothed;
  std::vector<std::uint32_t> columns;
  for (std::uint32_t y = 1; y + 1 < picture.height; ++y) {
    std::uint8_t* row = picture.data + y * picture.stride_bytes;
    before.assign(row, row + row_bytes);
    smoothed = before;
    smooth_row(above.data(), before.data(), row + picture.stride_bytes,
               row_bytes, picture.channels, columns, smoothed.data());
    blend_bytes(smoothed.data(), before.data(), row_bytes, amount, row);
    above.swap(before);
  }
}

/// Out of 255 steps, not 256, as Pillow counts them; wraps around.
std::uint8_t hue_steps(double amount) {
  return static_cast<std::uint8_t>(static_cast<int>(amount * 255) & 0xff);
}

void change(const ColourView& picture, const ColourChange& change) {
  const auto amount = static_cast<float>(change.amount);
  const std::size_t row_bytes = std::size_t{picture.width} * picture.channels;
  const auto blend = [&](int from) {
    for_each_row(picture, [&](std::uint8_t* row) {
      blend_from(from, row, row_bytes, amount);
    });
  };
  switch (change.kind) {
    case ColourKind::kBrightness:
      return blend(0);
    case ColourKind::kContrast:
      return blend(mean_grey(picture));
    case ColourKind::kSaturation:
      if (picture.channels == 1) return;
      return for_each_row(picture, [&](std::uint8_t* row) {
        saturate_rgb(row, picture.width, amount);
      });
    case ColourKind::kHue:
      if (picture.channels == 1) return;
      return for_each_row(picture, [&](std::uint8_t* row) {
        turn_hue(row, picture.width, hue_steps(change.amount));
      });
    case ColourKind::kGrey:
      if (picture.channels == 1) return;
      return for_each_row(picture, [&](std::uint8_t* row) {
        make_rgb_grey(row, picture.width, row);
      });
    case ColourKind::kInvert:
      return change_bytes(picture, [](std::uint8_t byte) {
        return static_cast<std::uint8_t>(~byte);
      });
    case ColourKind::kPosterize: {
      const int dropped = (1 << (8 - static_cast<int>(change.amount))) - 1;
      return change_bytes(picture, [dropped](std::uint8_t byte) {
        return static_cast<std::uint8_t>(byte & ~dropped);
      });
    }
    case ColourKind::kSolarize:
      return for_each_row(picture, [&](std::uint8_t* row) {
        invert_from(static_cast<int>(std::ceil(change.amount)), row, row_bytes);
      });
    case ColourKind::kAutoContrast:
      return look_up_by(picture, stretched);
    case ColourKind::kEqualize:
      return look_up_by(picture, flattened);
    case ColourKind::kSharpness:
      return sharpen(picture, amount);
  }
}

}  // namespace

void change_colours(const ColourView& picture,
                    std::span<const ColourChange> changes) {
  for (const ColourChange& one : changes) change(picture, one);
}

}  // namespace leat
