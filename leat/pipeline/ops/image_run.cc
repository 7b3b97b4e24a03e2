// The first step decides what is decoded. In the order of decisions:
//
//   crop     the part of the upright picture that the first step reads
//   shrink   how far the JPEG decoder may reduce it: 2^n
//   region   the same part in shrunk pixels, whole ones; what hangs over the
//   crop
//            on either side is a fraction that goes into the weights
//   read     the part of the region that the wanted targets have weights for
//
// Then everything is turned from upright to stored, and the decoder starts.

#include "leat/pipeline/ops/image_run.h"

#include <malloc.h>

#include <cstring>
#include <optional>

#include "leat/base/errors.h"
#include "leat/base/units.h"
#include "leat/codec/image/image_codec.h"
#include "leat/codec/image_formats.h"
#include "leat/pipeline/ops/kernels.h"
#include "leat/pipeline/ops/orientation.h"
#include "leat/pipeline/ops/picture_op.h"
#include "leat/pipeline/ops/resize.h"
#include "leat/pipeline/ops/row_source.h"

namespace leat {
namespace {

/// Whether the filter blurs enough to hide that the decoder shrank before it.
bool hides_shrinking(Interpolation interpolation) {
  return interpolation != Interpolation::kNearest &&
         interpolation != Interpolation::kBox;
}

/// Whether enough is left for the filter to do: half as much again as the
/// target. With less, photographs come out more than 3 levels away from
/// Pillow's; with this, less than 2 (tests/python/test_ops.py).
bool leaves_enough(std::uint32_t from, std::uint32_t shrink_log2,
                   std::uint32_t to) {
  return std::uint64_t{from} * 2 >= (std::uint64_t{to} * 3) << shrink_log2;
}

/// One side of the crop in shrunk pixels.
struct ShrunkSide {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  double before = 0;  ///< How much of the first pixel lies outside the crop.
  double after = 0;   ///< How much of the last one.
};

ShrunkSide shrunk(std::uint32_t from, std::uint32_t length,
                  std::uint32_t shrink_log2) {
  const std::uint32_t factor = 1u << shrink_log2;
  const std::uint32_t end = from + length;
  ShrunkSide side;
  side.first = from / factor;
  const std::uint32_t last = (end + factor - 1) / factor;
  side.count = last - side.first;
  side.before = static_cast<double>(from - side.first * factor) / factor;
  side.after = static_cast<double>(std::uint64_t{last} * factor - end) / factor;
  return side;
}

class ImageRun {
 public:
  ImageRun(const ImageRunRequest& request, Scratch& scratch)
      : request_(request),
        plan_(request.geometry),
        scratch_(scratch),
        reader_(*scratch.reader),
        channels_(request.format.pixel_bytes()),
        orientation_(request.decode.exif_orientation == ExifOrientation::kApply
                         ? request.header.orientation
                         : std::uint8_t{1}) {}

  Result<void> run(std::span<std::byte> out, RunNotes& notes) {
    const TimePoint begin = scratch_.clock.now();
    LEAT_TRY_VOID(start_decoder());
    const Nanoseconds starting = scratch_.clock.now() - begin;
    if (!orientation_.is_upright()) LEAT_TRY_VOID(turn());

    ArraySink array(request_.format, {plan_.last.width, plan_.last.height},
                    {plan_.is_flipped, plan_.is_upside_down}, scratch_, out);
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      if (i + 1 == plan_.steps.size()) {
        LEAT_TRY_VOID(make(i, array));
      } else {
        LEAT_TRY_VOID(make_in_memory(i));
      }
    }
    if (plan_.steps.empty()) LEAT_TRY_VOID(copy(array));
    for (const Edit& edit : plan_.edits) edit_array(edit, out);
    if (decoded_) notes.decode_warnings += reader_.warnings();
    notes.transform += scratch_.clock.now() - begin - starting -
                       (decoded_ ? decoded_->spent() : Nanoseconds(0));
    return {};
  }

 private:
  /// Ops that came behind it may have mirrored the array.
  void edit_array(const Edit& edit, std::span<std::byte> out) const {
    const PictureValues values =
        values_in(request_.format, {plan_.last.width, plan_.last.height}, out);
    edit.edit->apply(
        values.mirrored({edit.mirrored.along_x != plan_.is_flipped,
                         edit.mirrored.along_y != plan_.is_upside_down}));
  }

  bool resizes_first() const {
    return !plan_.steps.empty() &&
           plan_.steps[0].kind == GeometryStep::Kind::kResize;
  }

  Result<void> start_decoder() {
    const std::uint32_t shrink =
        shrink_log2_of(request_.header, plan_, request_.decode);
    const Rect crop = orientation_.to_stored(
        plan_.read_of(0), upright_size(request_.header, request_.decode));
    const ShrunkSide x = shrunk(crop.x, crop.width, shrink);
    const ShrunkSide y = shrunk(crop.y, crop.height, shrink);
    const PixelSize region = orientation_.turned({x.count, y.count});

    Rect read{0, 0, region.width, region.height};
    if (resizes_first()) {
      const bool swaps = orientation_.swaps_axes();
      const ShrunkSide& right = swaps ? y : x;
      const ShrunkSide& down = swaps ? x : y;
      assign_weights(0, region,
                     orientation_.mirrors_x() ? right.after : right.before,
                     orientation_.mirrors_y() ? down.after : down.before,
                     right.count - right.before - right.after,
                     down.count - down.before - down.after);
      read = {scratch_.across.first(), scratch_.down.first(),
              scratch_.across.count(), scratch_.down.count()};
    }
    Rect wanted = orientation_.to_stored(read, region);
    wanted.x += x.first;
    wanted.y += y.first;
    stored_ = {wanted.width, wanted.height};
    return open(wanted, shrink);
  }

  Result<void> open(const Rect& wanted, std::uint32_t shrink) {
    LEAT_TRY_VOID(open_stored(wanted, shrink));
    if (bytes_per_pixel(request_.decode.mode) == channels_) return {};
    tripled_.emplace(*source_, wanted.width, scratch_);
    source_ = &*tripled_;
    return {};
  }

  /// With as many channels as it is decoded with.
  Result<void> open_stored(const Rect& wanted, std::uint32_t shrink) {
    const std::uint32_t channels = bytes_per_pixel(request_.decode.mode);
    if (request_.are_pixels) {
      pixels_.emplace(request_.encoded, request_.header.width, wanted, channels,
                      scratch_);
      source_ = &*pixels_;
      return {};
    }
    LEAT_TRY_VOID(reserve_decoder());
    LEAT_TRY(const Rect decoded,
             reader_.start(request_.encoded, request_.header,
                           {request_.decode.mode, shrink, wanted}));
    decoded_.emplace(reader_, scratch_, decoded, wanted.x, channels);
    source_ = &*decoded_;
    return {};
  }

  /// Waits for other threads' pictures. Nothing that it waits for waits for it:
  /// whoever holds decoder's memory only computes.
  Result<void> reserve_decoder() {
    const std::uint64_t bytes = request_.header.working_bytes;
    if (scratch_.decode_room == nullptr || bytes == 0) return {};
    const std::uint64_t most = scratch_.decode_room->capacity_bytes();
    if (bytes > most) {
      const ImageCodec& codec = *request_.header.codec;
      return exhausted(
          "decoding this {} of {} x {} pixels takes {}, and the decoders' part "
          "of memory= is {}: give {} times as much memory=, or store the "
          "picture {}",
          codec.name, request_.header.width, request_.header.height,
          format_bytes(bytes), format_bytes(most), bytes / most + 1,
          codec.stored_lighter);
    }
    LEAT_TRY(scratch_.decode_memory, scratch_.decode_room->reserve(bytes, {}));
    return {};
  }

  void assign_weights(std::size_t step_index, PixelSize source, double from_x,
                      double from_y, double width, double height) {
    const GeometryStep& step = plan_.steps[step_index];
    const Rect& window = plan_.read_of(step_index + 1);
    scratch_.across.assign({source.width, from_x, width, step.to.width,
                            window.x, window.width, step.interpolation});
    scratch_.down.assign({source.height, from_y, height, step.to.height,
                          window.y, window.height, step.interpolation});
  }

  /// Decodes all and puts it upright.
  Result<void> turn() {
    const std::size_t stored_stride = stride_for(stored_.width);
    MemorySink stored(
        scratch_.images[0].at_least(stored_stride * stored_.height),
        stored_stride);
    LEAT_TRY_VOID(copy_rows(stored, stored_));
    const PixelSize upright = orientation_.turned(stored_);
    const std::size_t stride = stride_for(upright.width);
    std::uint8_t* into = scratch_.images[1].at_least(stride * upright.height);
    turn_upright(
        {stored.place(0), stored_stride, stored_.width, stored_.height},
        channels_, orientation_, into, stride);
    view_.emplace(PixelView{into, stride, upright.width, upright.height});
    source_ = &*view_;
    next_image_ = 0;
    return {};
  }

  std::size_t stride_for(std::uint32_t width) const {
    return std::size_t{width} * channels_ + kRowSlackBytes;
  }

  Result<void> make(std::size_t i, RowSink& sink) {
    const GeometryStep& step = plan_.steps[i];
    switch (step.kind) {
      case GeometryStep::Kind::kResize:
        return resize(step, sink);
      case GeometryStep::Kind::kPad:
        return pad(i, sink);
      case GeometryStep::Kind::kPicture:
        return are_of_single_pixels(step.changes) ? change_rows(i, sink)
                                                  : change_whole(i, sink);
    }
    return {};
  }

  /// Makes the part of image i + 1 that the next step reads, and gets ready for
  /// that step.
  Result<void> make_in_memory(std::size_t i) {
    const Rect& window = plan_.read_of(i + 1);
    const std::size_t stride = stride_for(window.width);
    std::uint8_t* data =
        scratch_.images[next_image_].at_least(stride * window.height);
    MemorySink sink(data, stride);
    LEAT_TRY_VOID(make(i, sink));
    next_image_ = 1 - next_image_;

    PixelView view{data, stride, window.width, window.height};
    if (plan_.steps[i + 1].kind == GeometryStep::Kind::kResize) {
      assign_weights(i + 1, {window.width, window.height}, 0, 0, window.width,
                     window.height);
      view.data += scratch_.down.first() * stride +
                   std::size_t{scratch_.across.first()} * channels_;
      view.width = scratch_.across.count();
      view.height = scratch_.down.count();
    }
    view_.emplace(view);
    source_ = &*view_;
    return {};
  }

  /// By the weights in the scratch.
  Result<void> resize(const GeometryStep& step, RowSink& sink) {
    const PixelSize from{step.from.width, step.from.height};
    return resizes_down_first(from, step.to)
               ? resize_down_first(*source_, channels_, scratch_, sink)
               : resize_across_first(*source_, channels_, scratch_, sink);
  }

  Result<void> pad(std::size_t i, RowSink& sink) {
    const GeometryStep& step = plan_.steps[i];
    const Rect& window = plan_.read_of(i + 1);
    // The part of the window that is not filled.
    const std::uint32_t left = std::max(window.x, step.pad_x);
    const std::uint32_t right =
        std::min(window.x + window.width, step.pad_x + step.from.width);
    for (std::uint32_t y = 0; y < window.y + window.height; ++y) {
      const bool has_pixels =
          y >= step.pad_y && y - step.pad_y < step.from.height;
      const std::uint8_t* from = nullptr;
      if (has_pixels) {
        LEAT_TRY(const Rows rows, source_->next(1));
        from = rows.data;
      }
      if (y < window.y) continue;
      std::uint8_t* into = sink.place(y - window.y);
      fill(step.fill, into, window.width);
      if (has_pixels && left < right) {
        std::memcpy(into + std::size_t{left - window.x} * channels_,
                    from + std::size_t{left - step.pad_x} * channels_,
                    std::size_t{right - left} * channels_);
      }
      sink.done(y - window.y);
    }
    return {};
  }

  void fill(const FillColour& colour, std::uint8_t* into,
            std::uint32_t width) const {
    if (channels_ == 1 || (colour[0] == colour[1] && colour[0] == colour[2])) {
      std::memset(into, colour[0], std::size_t{width} * channels_);
      return;
    }
    for (std::uint32_t x = 0; x < width; ++x, into += 3) {
      std::memcpy(into, colour.data(), 3);
    }
  }

  /// Reads all that the step reads, changes it, and hands on the part that the
  /// next step reads.
  Result<void> change_whole(std::size_t i, RowSink& sink) {
    const GeometryStep& step = plan_.steps[i];
    const Rect& window = plan_.read_of(i + 1);
    const std::size_t stride = stride_for(step.from.width);
    MemorySink picture(scratch_.picture.at_least(stride * step.from.height),
                       stride);
    LEAT_TRY_VOID(copy_rows(picture, {step.from.width, step.from.height}));
    const ColourView made =
        change_picture({picture.place(0), stride, step.from.width,
                        step.from.height, channels_},
                       step.changes, scratch_);
    for (std::uint32_t y = 0; y < window.height; ++y) {
      sink.put(y,
               made.data + (window.y + y) * made.stride_bytes +
                   std::size_t{window.x} * channels_,
               std::size_t{window.width} * channels_);
    }
    return {};
  }

  /// The same for changes that need no more than a pixel at a time.
  Result<void> change_rows(std::size_t i, RowSink& sink) {
    const GeometryStep& step = plan_.steps[i];
    const Rect& window = plan_.read_of(i + 1);
    const std::uint32_t end = window.y + window.height;
    for (std::uint32_t y = 0; y < end;) {
      LEAT_TRY(const Rows rows, source_->next(end - y));
      for (std::uint32_t k = 0; k < rows.count; ++k, ++y) {
        if (y < window.y) continue;
        const std::size_t bytes = std::size_t{window.width} * channels_;
        std::uint8_t* const row = sink.place(y - window.y);
        std::memcpy(row,
                    rows.data + k * rows.stride_bytes +
                        std::size_t{window.x} * channels_,
                    bytes);
        change_colours({row, bytes, window.width, 1, channels_}, step.changes);
        sink.done(y - window.y);
      }
    }
    return {};
  }

  Result<void> copy(RowSink& sink) {
    return copy_rows(sink, {plan_.last.width, plan_.last.height});
  }

  Result<void> copy_rows(RowSink& sink, PixelSize size) {
    for (std::uint32_t y = 0; y < size.height;) {
      LEAT_TRY(const Rows rows, source_->next(size.height - y));
      for (std::uint32_t i = 0; i < rows.count; ++i) {
        sink.put(y++, rows.data + i * rows.stride_bytes,
                 std::size_t{size.width} * channels_);
      }
    }
    return {};
  }

  const ImageRunRequest& request_;
  const Geometry& plan_;
  Scratch& scratch_;
  ImageReader& reader_;
  const std::uint32_t channels_;  // Bytes of a pixel that ops work on.
  const Orientation orientation_;
  PixelSize stored_;            // The size that the decoder delivers.
  std::size_t next_image_ = 0;  // The next of the two images in the scratch.
  std::optional<DecodedRows> decoded_;
  std::optional<PixelRows> pixels_;
  std::optional<TripledRows> tripled_;  // Around one of those two.
  std::optional<ViewRows> view_;
  RowSource* source_ = nullptr;  // One of the four.
};

}  // namespace

std::uint32_t shrink_log2_of(const ImageHeader& header, const Geometry& plan,
                             const DecodeImageOp& decode) {
  if (header.most_shrink_log2 == 0 || plan.steps.empty() ||
      plan.steps[0].kind != GeometryStep::Kind::kResize ||
      decode.dct_scaling == DctScaling::kOff ||
      !hides_shrinking(plan.steps[0].interpolation)) {
    return 0;
  }
  const GeometryStep& step = plan.steps[0];
  std::uint32_t log2 = 0;
  while (log2 < header.most_shrink_log2 &&
         leaves_enough(step.from.width, log2 + 1, step.to.width) &&
         leaves_enough(step.from.height, log2 + 1, step.to.height)) {
    ++log2;
  }
  return log2;
}

PixelSize upright_size(const ImageHeader& header, const DecodeImageOp& decode) {
  const bool turns = decode.exif_orientation == ExifOrientation::kApply;
  return Orientation(turns ? header.orientation : std::uint8_t{1})
      .turned({header.width, header.height});
}

namespace {

/// From here on the C library is told to give memory back to the system. It
/// would keep as much for each thread.
constexpr std::uint64_t kMostKeptFreed = 16 * kMiB;

void give_back(Reservation& decoder) {
#ifdef __GLIBC__
  if (decoder.bytes() > kMostKeptFreed) (void)::malloc_trim(0);
#endif
  decoder.release();
}

/// Leaves the scratch to the next picture, also if the system refuses memory
/// for this one.
class PictureEnd {
 public:
  PictureEnd(Scratch& scratch, bool has_reader)
      : scratch_(scratch), has_reader_(has_reader) {}
  ~PictureEnd() {
    if (has_reader_) scratch_.reader->finish();
    give_back(scratch_.decode_memory);
    scratch_.shrink();
  }
  PictureEnd(const PictureEnd&) = delete;
  PictureEnd& operator=(const PictureEnd&) = delete;

 private:
  Scratch& scratch_;
  const bool has_reader_;
};

}  // namespace

Result<void> run_image(const ImageRunRequest& request, Scratch& scratch,
                       std::span<std::byte> out, RunNotes& notes) {
  ImageRun run(request, scratch);
  const PictureEnd end(scratch, !request.are_pixels);
  return run.run(out, notes);
}

}  // namespace leat
