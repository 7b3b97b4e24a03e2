// The source of rows of pixels: a decoder or memory.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "leat/base/result.h"
#include "leat/codec/image/image.h"
#include "leat/pipeline/ops/kernels.h"
#include "leat/pipeline/ops/orientation.h"
#include "leat/pipeline/ops/scratch.h"

namespace leat {

/// Rows from top to bottom, a few at a time. Each may be read kRowSlackBytes
/// behind its end.
class RowSource {
 public:
  virtual ~RowSource() = default;
  /// The next rows, at least 1 and at most `most` (at least 1). Valid until the
  /// next call.
  virtual Result<Rows> next(std::uint32_t most) = 0;
};

/// Rows of a decoder that was started.
class DecodedRows final : public RowSource {
 public:
  /// `decoded` is what the decoder announced, `first_x` the column wanted
  /// first.
  DecodedRows(ImageReader& reader, Scratch& scratch, const Rect& decoded,
              std::uint32_t first_x, std::uint32_t channels)
      : reader_(reader),
        scratch_(scratch),
        stride_(std::size_t{decoded.width} * channels + kRowSlackBytes),
        skipped_bytes_(std::size_t{first_x - decoded.x} * channels),
        block_(scratch.block.at_least(stride_ * kRowsAtOnce + kRowSlackBytes)) {
  }

  Result<Rows> next(std::uint32_t most) override {
    const std::uint32_t rows = std::min(most, kRowsAtOnce);
    const TimePoint begin = scratch_.clock.now();
    LEAT_TRY_VOID(reader_.read_rows(block_, stride_, rows));
    spent_ += scratch_.clock.now() - begin;
    return Rows{block_ + skipped_bytes_, stride_, rows};
  }

  /// Time spent in the decoder.
  Nanoseconds spent() const { return spent_; }

 private:
  // As many as libjpeg has at a time, and few enough to stay in the L1 cache.
  static constexpr std::uint32_t kRowsAtOnce = 16;

  ImageReader& reader_;
  Scratch& scratch_;
  const std::size_t stride_;
  const std::size_t skipped_bytes_;
  std::uint8_t* const block_;
  Nanoseconds spent_{0};
};

/// Rows of pixels that are there already, interleaved and without gaps, of
/// which one part is wanted. They may end where they end: the last rows, behind
/// which nothing may be read, are copied first.
class PixelRows final : public RowSource {
 public:
  PixelRows(std::span<const std::byte> pixels, std::uint32_t width,
            const Rect& wanted, std::size_t pixel_bytes, Scratch& scratch)
      : stride_(width * pixel_bytes),
        row_bytes_(wanted.width * pixel_bytes),
        next_(reinterpret_cast<const std::uint8_t*>(pixels.data()) +
              wanted.y * stride_ + wanted.x * pixel_bytes),
        end_(reinterpret_cast<const std::uint8_t*>(pixels.data()) +
             pixels.size()),
        copy_(scratch.block.at_least(row_bytes_ + kRowSlackBytes)) {}

  Result<Rows> next(std::uint32_t most) override {
    const std::size_t needed = row_bytes_ + kRowSlackBytes;
    const auto left = static_cast<std::size_t>(end_ - next_);
    if (left < needed) {
      std::memcpy(copy_, next_, row_bytes_);
      next_ += std::min(stride_, left);
      return Rows{copy_, needed, 1};
    }
    const std::size_t there = (left - needed) / stride_ + 1;
    const Rows rows{
        next_, stride_,
        static_cast<std::uint32_t>(std::min<std::size_t>(most, there))};
    next_ += std::min(rows.count * stride_, left);
    return rows;
  }

 private:
  const std::size_t stride_;
  const std::size_t row_bytes_;
  const std::uint8_t* next_;
  const std::uint8_t* const end_;
  std::uint8_t* const copy_;
};

/// Rows of bytes as rows of three equal channels.
class TripledRows final : public RowSource {
 public:
  TripledRows(RowSource& grey, std::uint32_t width, Scratch& scratch)
      : grey_(grey),
        width_(width),
        stride_(std::size_t{width} * 3 + kRowSlackBytes),
        block_(scratch.tripled.at_least(stride_ * kTripledAtOnce)) {}

  Result<Rows> next(std::uint32_t most) override {
    LEAT_TRY(const Rows rows, grey_.next(std::min(most, kTripledAtOnce)));
    for (std::uint32_t y = 0; y < rows.count; ++y) {
      const std::uint8_t* from = rows.data + y * rows.stride_bytes;
      std::uint8_t* into = block_ + y * stride_;
      for (std::uint32_t x = 0; x < width_; ++x, into += 3) {
        std::memset(into, from[x], 3);
      }
    }
    return Rows{block_, stride_, rows.count};
  }

 private:
  static constexpr std::uint32_t kTripledAtOnce = 16;

  RowSource& grey_;
  const std::uint32_t width_;
  const std::size_t stride_;
  std::uint8_t* const block_;
};

/// Rows of a picture in memory.
class ViewRows final : public RowSource {
 public:
  explicit ViewRows(const PixelView& view) : view_(view) {}

  Result<Rows> next(std::uint32_t most) override {
    const std::uint32_t rows = std::min(most, view_.height - next_);
    const Rows result{view_.data + next_ * view_.stride_bytes,
                      view_.stride_bytes, rows};
    next_ += rows;
    return result;
  }

 private:
  const PixelView view_;
  std::uint32_t next_ = 0;
};

}  // namespace leat
