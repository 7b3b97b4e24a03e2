#include "leat/codec/npy/npy_labels.h"

#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "leat/base/errors.h"
#include "leat/codec/image_codecs.h"
#include "leat/codec/npy/npy_header.h"

namespace leat {
namespace {

constexpr std::int64_t kMostSide = 0x7fff'ffff;
constexpr std::uint64_t kMostLabel = 255;

bool are_whole_numbers(NpyKind kind) {
  return kind == NpyKind::kBool || kind == NpyKind::kSigned ||
         kind == NpyKind::kUnsigned;
}

/// The place of a number in the array.
struct Pixel {
  std::uint32_t row = 0;
  std::uint32_t column = 0;
};

template <class Number>
Error no_label(Number number, Pixel pixel) {
  return corrupt(
      "npy: {} at row {}, column {} is no label of a mask, which are 0 to 255: "
      "save pixels that do not count as 255; to have other numbers, read the "
      "array with LoadNpy and move it in a Python(fields=...) that has the "
      "picture, too",
      +number, pixel.row, pixel.column);
}

/// A row of `width` numbers.
template <class Number>
Result<void> read_row(const std::byte* from, std::uint32_t width,
                      std::uint8_t* into, Pixel begin) {
  for (std::uint32_t i = 0; i < width; ++i) {
    Number number{};
    std::memcpy(&number, from + std::size_t{i} * sizeof(Number),
                sizeof(Number));
    // A negative one becomes large.
    const auto label = static_cast<std::uint64_t>(number);
    if (label > kMostLabel) {
      return no_label(number, {begin.row, begin.column + i});
    }
    into[i] = static_cast<std::uint8_t>(label);
  }
  return {};
}

using ReadRow = Result<void> (*)(const std::byte*, std::uint32_t, std::uint8_t*,
                                 Pixel);

ReadRow row_reader_of(const NpyHeader& header) {
  const bool is_signed = header.kind == NpyKind::kSigned;
  switch (header.item_bytes) {
    case 1:
      return is_signed ? read_row<std::int8_t> : read_row<std::uint8_t>;
    case 2:
      return is_signed ? read_row<std::int16_t> : read_row<std::uint16_t>;
    case 4:
      return is_signed ? read_row<std::int32_t> : read_row<std::uint32_t>;
    default:
      return is_signed ? read_row<std::int64_t> : read_row<std::uint64_t>;
  }
}

class NpyLabelReader final : public ImageReader {
 public:
  Result<Rect> start(std::span<const std::byte> encoded,
                     const ImageHeader& header,
                     const DecodeRequest& request) override {
    LEAT_TRY(const NpyHeader array, read_npy_header(encoded));
    read_row_ = row_reader_of(array);
    item_bytes_ = array.item_bytes;
    items_ = encoded.subspan(array.data_offset);
    width_ = header.width;
    wanted_ = request.wanted;
    next_row_ = wanted_.y;
    return wanted_;
  }

  Result<void> read_rows(std::uint8_t* into, std::size_t stride_bytes,
                         std::uint32_t rows) override {
    for (std::uint32_t i = 0; i < rows; ++i, into += stride_bytes) {
      const std::size_t first = std::size_t{next_row_} * width_ + wanted_.x;
      LEAT_TRY_VOID(read_row_(items_.data() + first * item_bytes_,
                              wanted_.width, into, {next_row_, wanted_.x}));
      ++next_row_;
    }
    return {};
  }

  std::uint32_t warnings() const override { return 0; }

  void finish() override { items_ = {}; }

 private:
  ReadRow read_row_ = nullptr;
  std::size_t item_bytes_ = 0;
  std::span<const std::byte> items_;
  std::uint32_t width_ = 0;
  Rect wanted_;
  std::uint32_t next_row_ = 0;
};

bool is_npy(std::string_view encoded) {
  return encoded.starts_with("\x93NUMPY");
}

}  // namespace

Result<ClaimedImage> read_npy_labels_header(
    std::span<const std::byte> encoded) {
  LEAT_TRY(const NpyHeader array, read_npy_header(encoded));
  if (array.shape.size() != 2) {
    return invalid(
        "npy: an array of {} dimensions is no mask, which has a height and a "
        "width",
        array.shape.size());
  }
  if (!are_whole_numbers(array.kind)) {
    return invalid(
        "npy: a mask's labels are whole numbers, and these have fractions; "
        "save array.astype(\"uint8\")");
  }
  const std::int64_t height = array.shape[0];
  const std::int64_t width = array.shape[1];
  if (height == 0 || width == 0 || height > kMostSide || width > kMostSide) {
    return corrupt("npy: a mask of {} x {} pixels", width, height);
  }
  ClaimedImage claimed;
  claimed.header.width = static_cast<std::uint32_t>(width);
  claimed.header.height = static_cast<std::uint32_t>(height);
  claimed.header.is_grey = true;
  claimed.header.may_hold_labels = true;
  return claimed;
}

std::unique_ptr<ImageReader> make_npy_label_reader() {
  return std::make_unique<NpyLabelReader>();
}

constinit const ImageCodec kNpyLabelCodec = {
    .name = ".npy",
    .endings = {},
    .recognizes = is_npy,
    .read_header = read_npy_labels_header,
    .make_reader = make_npy_label_reader,
    .has_pictures = false};

}  // namespace leat
