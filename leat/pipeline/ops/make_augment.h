// The makers of the ops that augment; make_op() asks them.
#pragma once
#include <optional>
#include <string_view>

#include "leat/pipeline/ops/op.h"
#include "leat/pipeline/ops/param_reader.h"

namespace leat {

/// Nothing if `name` is none of theirs. Errors are the reader's.
std::optional<OpParams> make_augment_params(std::string_view name,
                                            ParamReader& params);

/// Parameters that several ops share.
Interpolation interpolation_in(ParamReader& params);
FillColour fill_in(ParamReader& params);

}  // namespace leat
