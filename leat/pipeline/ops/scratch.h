// Memory that one thread keeps from image to image.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "leat/base/buffer.h"
#include "leat/base/clock.h"
#include "leat/codec/image/image.h"
#include "leat/codec/image_formats.h"
#include "leat/pipeline/ops/weights.h"
#include "leat/pipeline/program/program.h"
#include "leat/runtime/memory_budget.h"

namespace leat {

/// A buffer that grows when more bytes are asked for, and then
/// loses its content.
class ReusedBytes {
 public:
  std::uint8_t* at_least(std::size_t size_bytes) {
    if (buffer_.size() < size_bytes) {
      buffer_ = Buffer();  // Free first: never both at once.
      buffer_ = Buffer(size_bytes);
    }
    return reinterpret_cast<std::uint8_t*>(buffer_.data());
  }

  /// Gives back what an unusually large image took.
  void shrink_to(std::size_t most_bytes) {
    if (buffer_.size() > most_bytes) buffer_ = Buffer();
  }

 private:
  Buffer buffer_;
};

class Scratch {
 public:
  /// More than this in one piece is not kept between images.
  static constexpr std::size_t kKeptBytes = 8 << 20;

  std::unique_ptr<ImageReader> reader = make_image_reader();
  MemoryBudget* decode_room = nullptr;
  Reservation decode_memory;  ///< For the picture that is being decoded.
  AxisWeights across;
  AxisWeights down;
  ReusedBytes block;    ///< A few rows as decoded.
  ReusedBytes tripled;  ///< The same, with three equal channels.
  ReusedBytes narrow;   ///< Rows resized along x.
  ReusedBytes wide;     ///< Rows not yet resized along x.
  ReusedBytes blended;  ///< The same, after they were blended along y.
  ReusedBytes row;      ///< One row of the result, before it is written.
  ReusedBytes planes;   ///< The same, taken apart.
  std::array<ReusedBytes, 2> images;  ///< Whole images between two steps.
  ReusedBytes picture;                ///< One that is changed as a whole.
  std::array<ReusedBytes, 2> warped;  ///< The same, warped.
  SteadyClock clock;

  void shrink() {
    for (ReusedBytes* bytes :
         {&block, &tripled, &narrow, &wide, &blended, &row, &planes, &images[0],
          &images[1], &picture, &warped[0], &warped[1]}) {
      bytes->shrink_to(kKeptBytes);
    }
  }
};

}  // namespace leat
