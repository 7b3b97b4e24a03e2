// A resize, row by row: along one axis, then along the other.
#pragma once
#include <cstdint>

#include "leat/base/result.h"
#include "leat/pipeline/ops/op.h"
#include "leat/pipeline/ops/row_sink.h"
#include "leat/pipeline/ops/row_source.h"
#include "leat/pipeline/ops/scratch.h"

namespace leat {

/// True if the height comes first: if it loses more than twice as many pixels
/// as the width. This is Pillow's rule since version 13, and visible in its
/// pixels, since values are rounded between the two; before, the width always
/// came first.
bool resizes_down_first(PixelSize from, PixelSize to);

/// Both take scratch.down.count() rows of `source`, which begin with the first
/// row and column that the weights in `scratch` refer to.
Result<void> resize_across_first(RowSource& source, std::uint32_t channels,
                                 Scratch& scratch, RowSink& sink);
Result<void> resize_down_first(RowSource& source, std::uint32_t channels,
                               Scratch& scratch, RowSink& sink);

}  // namespace leat
