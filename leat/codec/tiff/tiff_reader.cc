#include "leat/codec/tiff/tiff_reader.h"

#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/errors.h"
#include "leat/codec/image/grey.h"
#include "leat/codec/image_codecs.h"
#include "leat/codec/tiff/tiff_header.h"

namespace leat {
namespace {

/// Libtiff may take as much for one thing, as a strip or a directory's table.
constexpr tmsize_t kMostBytes = tmsize_t{1} << 30;
/// A tile may be larger than its picture, but not by much more than this.
constexpr std::uint32_t kUsualTileSide = 4096;

struct CloseTiff {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};
struct FreeOptions {
  void operator()(TIFFOpenOptions* options) const {
    TIFFOpenOptionsFree(options);
  }
};

/// A file in memory, and what libtiff says of it.
struct TiffFile {
  std::span<const std::byte> bytes;
  std::uint64_t at = 0;
  std::string message = "cut short";  ///< The last one.
  std::uint32_t warnings = 0;
};

extern "C" {

tmsize_t leat_tiff_read(thandle_t handle, void* into, tmsize_t size) {
  auto* file = static_cast<TiffFile*>(handle);
  const std::uint64_t left =
      file->bytes.size() -
      std::min<std::uint64_t>(file->at, file->bytes.size());
  const auto count = std::min<std::uint64_t>(
      left, static_cast<std::uint64_t>(std::max<tmsize_t>(size, 0)));
  if (count > 0) std::memcpy(into, file->bytes.data() + file->at, count);
  file->at += count;
  return static_cast<tmsize_t>(count);
}

tmsize_t leat_tiff_write(thandle_t, void*, tmsize_t) { return -1; }

toff_t leat_tiff_seek(thandle_t handle, toff_t offset, int whence) {
  auto* file = static_cast<TiffFile*>(handle);
  const std::uint64_t from = whence == SEEK_SET   ? 0
                             : whence == SEEK_CUR ? file->at
                                                  : file->bytes.size();
  file->at = from + offset;
  return file->at;
}

int leat_tiff_close(thandle_t) { return 0; }

toff_t leat_tiff_size(thandle_t handle) {
  return static_cast<TiffFile*>(handle)->bytes.size();
}

int leat_tiff_error(TIFF*, void* file, const char*, const char* format,
                    va_list arguments) {
  char text[160];
  (void)std::vsnprintf(text, sizeof text, format, arguments);
  static_cast<TiffFile*>(file)->message = text;
  return 1;  // No other handler runs.
}

int leat_tiff_warning(TIFF*, void* file, const char*, const char*, va_list) {
  ++static_cast<TiffFile*>(file)->warnings;
  return 1;
}

}  // extern "C"

class TiffReader final : public ImageReader {
 public:
  Result<Rect> start(std::span<const std::byte> encoded,
                     const ImageHeader& header,
                     const DecodeRequest& request) override {
    finish();
    file_ = TiffFile{.bytes = encoded};
    mode_ = request.mode;
    LEAT_TRY_VOID(open(header));
    is_tiled_ = TIFFIsTiled(tiff_.get()) != 0;
    if (is_tiled_) {
      LEAT_TRY_VOID(plan_tiles());
    } else {
      row_bytes_ = static_cast<std::size_t>(TIFFScanlineSize64(tiff_.get()));
    }
    const std::size_t needed = std::size_t{width_} * samples_ * (bits_ / 8);
    if (row_bytes_ < needed) return changed();
    if (mode_ == PixelMode::kLabels && bits_ != 8) {
      return corrupt("TIFF has 16 bits a pixel, and labels have at most 8");
    }
    block_.resize(is_tiled_ ? row_bytes_ * tile_height_ : row_bytes_);
    LEAT_TRY_VOID(skip_to(request.wanted.y));
    return Rect{0, request.wanted.y, width_, request.wanted.height};
  }

  Result<void> read_rows(std::uint8_t* into, std::size_t stride_bytes,
                         std::uint32_t rows) override {
    for (std::uint32_t i = 0; i < rows; ++i, into += stride_bytes) {
      LEAT_TRY(std::uint8_t* const row, next_row());
      convert(row, into);
    }
    return {};
  }

  std::uint32_t warnings() const override { return file_.warnings; }

  void finish() override { tiff_.reset(); }

 private:
  Result<void> open(const ImageHeader& header) {
    const std::unique_ptr<TIFFOpenOptions, FreeOptions> options(
        TIFFOpenOptionsAlloc());
    TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), kMostBytes);
    TIFFOpenOptionsSetErrorHandlerExtR(options.get(), leat_tiff_error, &file_);
    TIFFOpenOptionsSetWarningHandlerExtR(options.get(), leat_tiff_warning,
                                         &file_);
    tiff_.reset(TIFFClientOpenExt(
        "image", "rm", &file_, leat_tiff_read, leat_tiff_write, leat_tiff_seek,
        leat_tiff_close, leat_tiff_size, nullptr, nullptr, options.get()));
    if (tiff_ == nullptr) return failure();
    std::uint32_t width = 0;
    std::uint32_t height = 0;
    std::uint16_t photometric = PHOTOMETRIC_MINISBLACK;
    std::uint16_t planes = PLANARCONFIG_CONTIG;
    (void)TIFFGetField(tiff_.get(), TIFFTAG_IMAGEWIDTH, &width);
    (void)TIFFGetField(tiff_.get(), TIFFTAG_IMAGELENGTH, &height);
    (void)TIFFGetField(tiff_.get(), TIFFTAG_PHOTOMETRIC, &photometric);
    (void)TIFFGetFieldDefaulted(tiff_.get(), TIFFTAG_BITSPERSAMPLE, &bits_);
    (void)TIFFGetFieldDefaulted(tiff_.get(), TIFFTAG_SAMPLESPERPIXEL,
                                &samples_);
    (void)TIFFGetFieldDefaulted(tiff_.get(), TIFFTAG_PLANARCONFIG, &planes);
    is_white_0_ = photometric == PHOTOMETRIC_MINISWHITE;
    width_ = width;
    height_ = height;
    const bool is_colour = samples_ == 3 || samples_ == 4;
    if (width != header.width || height != header.height ||
        bits_ != header.depth || (samples_ == 1) != header.is_grey ||
        !(samples_ == 1 || (is_colour && planes == PLANARCONFIG_CONTIG)) ||
        (mode_ == PixelMode::kGrey16 && samples_ != 1)) {
      return changed();
    }
    file_.warnings = 0;  // Those so far are of tags that nobody asked for.
    return {};
  }

  Result<void> plan_tiles() {
    std::uint32_t width = 0;
    std::uint32_t height = 0;
    (void)TIFFGetField(tiff_.get(), TIFFTAG_TILEWIDTH, &width);
    (void)TIFFGetField(tiff_.get(), TIFFTAG_TILELENGTH, &height);
    const std::uint64_t tile_row = TIFFTileRowSize64(tiff_.get());
    if (width == 0 || height == 0 || width > std::max(width_, kUsualTileSide) ||
        height > std::max(height_, kUsualTileSide) ||
        tile_row != std::uint64_t{width} * samples_ * (bits_ / 8)) {
      return corrupt("TIFF: tiles of {} x {} pixels, of a picture of {} x {}",
                     width, height, width_, height_);
    }
    tile_width_ = width;
    tile_height_ = height;
    row_bytes_ = tile_row * ((std::uint64_t{width_} + width - 1) / width);
    const std::uint64_t block_bytes = row_bytes_ * height;
    if (block_bytes > static_cast<std::uint64_t>(kMostBytes) ||
        block_bytes > file_.bytes.size() * kMostTiffGrowth) {
      return corrupt("TIFF claims larger tiles than its bytes can hold");
    }
    tile_.resize(tile_row * height);
    return {};
  }

  /// Rows come in order from the first of their strip or tiles on.
  Result<void> skip_to(std::uint32_t row) {
    std::uint32_t rows_at_once = tile_height_;
    if (!is_tiled_) {
      (void)TIFFGetFieldDefaulted(tiff_.get(), TIFFTAG_ROWSPERSTRIP,
                                  &rows_at_once);
    }
    next_ = rows_at_once == 0 ? 0 : row - row % rows_at_once;
    while (next_ < row) {
      LEAT_TRY([[maybe_unused]] const std::uint8_t* passed, next_row());
    }
    return {};
  }

  Result<std::uint8_t*> next_row() {
    const std::uint32_t row = next_++;
    if (!is_tiled_) {
      if (TIFFReadScanline(tiff_.get(), block_.data(), row) < 0) {
        return failure();
      }
      return block_.data();
    }
    if (row % tile_height_ == 0) LEAT_TRY_VOID(read_tiles(row));
    return block_.data() + row % tile_height_ * row_bytes_;
  }

  Result<void> read_tiles(std::uint32_t row) {
    const std::size_t tile_row = tile_.size() / tile_height_;
    for (std::uint32_t x = 0; x < width_; x += tile_width_) {
      if (TIFFReadTile(tiff_.get(), tile_.data(), x, row, 0, 0) < 0) {
        return failure();
      }
      std::uint8_t* into = block_.data() + x / tile_width_ * tile_row;
      for (std::uint32_t y = 0; y < tile_height_; ++y) {
        std::memcpy(into + y * row_bytes_, tile_.data() + y * tile_row,
                    tile_row);
      }
    }
    return {};
  }

  void convert(std::uint8_t* row, std::uint8_t* into) {
    const std::uint32_t channels = samples_ == 1 ? 1 : 3;
    std::size_t item_bytes = bits_ / 8;
    if (samples_ == 4) drop_alpha(row, item_bytes);
    if (is_white_0_ && mode_ != PixelMode::kLabels) {
      for (std::size_t i = 0; i < width_ * item_bytes; ++i) {
        row[i] = static_cast<std::uint8_t>(~row[i]);
      }
    }
    if (bits_ == 16 && !has_16_bits(mode_)) {
      cut_depth(row, std::size_t{width_} * channels);
      item_bytes = 1;
    }
    if (channels == channels_of(mode_)) {
      std::memcpy(into, row, width_ * channels * item_bytes);
    } else if (channels == 3) {
      rgb_to_grey(row, into, width_);
    } else {
      for (std::size_t i = 0; i < std::size_t{width_} * 3; ++i) {
        std::memcpy(into + i * item_bytes, row + i / 3 * item_bytes,
                    item_bytes);
      }
    }
  }

  void drop_alpha(std::uint8_t* row, std::size_t item_bytes) const {
    for (std::size_t x = 0; x < width_; ++x) {
      std::memmove(row + x * 3 * item_bytes, row + x * 4 * item_bytes,
                   3 * item_bytes);
    }
  }

  /// Leaves the upper 8 bits of 16.
  static void cut_depth(std::uint8_t* row, std::size_t items) {
    for (std::size_t i = 0; i < items; ++i) {
      std::uint16_t value = 0;
      std::memcpy(&value, row + i * 2, sizeof value);
      row[i] = static_cast<std::uint8_t>(value >> 8);
    }
  }

  static Error changed() { return corrupt("TIFF has a header that changes"); }

  Error failure() const { return corrupt("TIFF: {}", file_.message); }

  TiffFile file_;
  PixelMode mode_ = PixelMode::kRgb;
  std::uint16_t bits_ = 8;
  std::uint16_t samples_ = 1;
  bool is_white_0_ = false;
  bool is_tiled_ = false;
  std::uint32_t width_ = 0;
  std::uint32_t height_ = 0;
  std::uint32_t tile_width_ = 0;
  std::uint32_t tile_height_ = 0;
  std::uint32_t next_ = 0;           // The next row.
  std::size_t row_bytes_ = 0;        // One row, or one of each tile beside it.
  std::vector<std::uint8_t> block_;  // One row, or as many as a tile has.
  std::vector<std::uint8_t> tile_;
  std::unique_ptr<TIFF, CloseTiff> tiff_;
};

constexpr std::string_view kTiffEndings[] = {"tif", "tiff"};

/// Also BigTIFFs, so that they are refused by name.
bool is_tiff(std::string_view encoded) {
  return encoded.starts_with(std::string_view("II*\0", 4)) ||
         encoded.starts_with(std::string_view("MM\0*", 4)) ||
         encoded.starts_with(std::string_view("II+\0", 4)) ||
         encoded.starts_with(std::string_view("MM\0+", 4));
}

}  // namespace

std::unique_ptr<ImageReader> make_tiff_reader() {
  return std::make_unique<TiffReader>();
}

constinit const ImageCodec kTiffCodec = {.name = "TIFF",
                                         .endings = kTiffEndings,
                                         .recognizes = is_tiff,
                                         .read_header = read_tiff_header,
                                         .make_reader = make_tiff_reader};

}  // namespace leat
