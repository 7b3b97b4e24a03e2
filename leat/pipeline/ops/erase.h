// RandomErasing: which part, and one colour or noise over a delivered array.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "leat/pipeline/ops/draws.h"
#include "leat/pipeline/ops/op.h"
#include "leat/pipeline/ops/row_sink.h"

namespace leat {

/// The fill of an erased part of the delivered array.
struct ArrayErase {
  Rect part;
  std::vector<double> value;     ///< As RandomErasingOp has it.
  std::uint64_t noise_seed = 0;  ///< The seed of the normal noise.
  friend bool operator==(const ArrayErase&, const ArrayErase&) = default;
};

/// Nothing if the draws say so, or if ten parts that were drawn did not fit.
std::optional<Rect> draw_erasing(const RandomErasingOp& op, PixelSize image,
                                 Draws& draws);

/// REQUIRES: out.size() == format.tensor(size).size_bytes(), floats.
void erase_part(const ArrayErase& erase, const PixelFormat& format,
                PixelSize size, std::span<std::byte> out);

}  // namespace leat
