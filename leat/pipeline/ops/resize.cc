#include "leat/pipeline/ops/resize.h"

#include <algorithm>
#include <cstring>

#include "leat/pipeline/ops/kernels.h"

namespace leat {
namespace {

/// The latest rows of a source: enough for any target row to find
/// all that it needs.
class RowWindow {
 public:
  RowWindow(RowSource& source, std::size_t row_bytes, std::uint32_t total,
            std::uint32_t most_at_once, ReusedBytes& memory)
      : source_(source),
        row_bytes_(row_bytes),
        stride_(row_bytes + kRowSlackBytes),
        total_(total),
        capacity_(std::min(total, 2 * most_at_once + 16)),
        data_(memory.at_least(stride_ * capacity_ + kRowSlackBytes)) {}

  /// Rows [first, end) at least; `first` never goes back.
  Result<Rows> rows(std::uint32_t first, std::uint32_t end) {
    while (next_ < end) {
      if (next_ - begin_ == capacity_) drop_before(std::min(first, next_));
      const std::uint32_t room =
          std::min(capacity_ - (next_ - begin_), total_ - next_);
      LEAT_TRY(const Rows got, source_.next(room));
      for (std::uint32_t i = 0; i < got.count; ++i) {
        std::memcpy(at(next_++), got.data + i * got.stride_bytes, row_bytes_);
      }
    }
    return Rows{at(first), stride_, next_ - first};
  }

 private:
  std::uint8_t* at(std::uint32_t row) const {
    return data_ + std::size_t{row - begin_} * stride_;
  }

  void drop_before(std::uint32_t row) {
    std::memmove(data_, at(row), std::size_t{next_ - row} * stride_);
    begin_ = row;
  }

  RowSource& source_;
  const std::size_t row_bytes_;
  const std::size_t stride_;
  const std::uint32_t total_;
  const std::uint32_t capacity_;
  std::uint8_t* const data_;
  std::uint32_t begin_ = 0;  // The rows [begin_, next_) are here.
  std::uint32_t next_ = 0;
};

}  // namespace

bool resizes_down_first(PixelSize from, PixelSize to) {
  const auto lost_width = std::int64_t{from.width} - to.width;
  const auto lost_height = std::int64_t{from.height} - to.height;
  return lost_height > std::max<std::int64_t>(2 * lost_width, 0);
}

Result<void> resize_across_first(RowSource& source, std::uint32_t channels,
                                 Scratch& scratch, RowSink& sink) {
  const std::size_t row_bytes = scratch.across.targets().size() * channels;
  const std::size_t stride = row_bytes + kRowSlackBytes;
  const std::uint32_t count = scratch.down.count();
  std::uint8_t* narrow = scratch.narrow.at_least(stride * count);
  for (std::uint32_t y = 0; y < count;) {
    LEAT_TRY(const Rows rows, source.next(count - y));
    resize_rows(rows, channels, scratch.across, narrow + y * stride, stride);
    y += rows.count;
  }
  std::uint32_t y = 0;
  for (const AxisWeights::Target& target : scratch.down.targets()) {
    blend_rows({narrow + target.first * stride, stride, target.count},
               scratch.down.quads(target), row_bytes, sink.place(y));
    sink.done(y++);
  }
  return {};
}

Result<void> resize_down_first(RowSource& source, std::uint32_t channels,
                               Scratch& scratch, RowSink& sink) {
  // This many blended rows are resized along x at once.
  constexpr std::uint32_t kBatch = 4;
  const AxisWeights& down = scratch.down;
  const std::size_t wide_bytes = std::size_t{scratch.across.count()} * channels;
  const std::size_t wide_stride = wide_bytes + kRowSlackBytes;
  const std::size_t row_bytes = scratch.across.targets().size() * channels;
  const std::size_t stride = row_bytes + kRowSlackBytes;
  std::uint8_t* blended =
      scratch.blended.at_least(wide_stride * kBatch + kRowSlackBytes);

  std::uint32_t most_at_once = 0;
  for (const AxisWeights::Target& target : down.targets()) {
    most_at_once = std::max(most_at_once, target.count);
  }
  RowWindow window(source, wide_bytes, down.count(), most_at_once,
                   scratch.wide);
  std::uint8_t* batch = scratch.narrow.at_least(stride * kBatch);

  const auto targets = static_cast<std::uint32_t>(down.targets().size());
  for (std::uint32_t y = 0; y < targets; y += kBatch) {
    const std::uint32_t rows = std::min(kBatch, targets - y);
    for (std::uint32_t i = 0; i < rows; ++i) {
      const AxisWeights::Target& target = down.targets()[y + i];
      LEAT_TRY(const Rows from,
               window.rows(target.first, target.first + target.count));
      blend_rows({from.data, from.stride_bytes, target.count},
                 down.quads(target), wide_bytes, blended + i * wide_stride);
    }
    resize_rows({blended, wide_stride, rows}, channels, scratch.across, batch,
                stride);
    for (std::uint32_t i = 0; i < rows; ++i) {
      std::memcpy(sink.place(y + i), batch + i * stride, row_bytes);
      sink.done(y + i);
    }
  }
  return {};
}

}  // namespace leat
