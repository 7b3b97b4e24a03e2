// Makes the parameters of augmenting ops, for make_op().
#pragma once
#include <optional>
#include <string_view>

#include "leat/pipeline/ops/op.h"
#include "leat/pipeline/ops/param_reader.h"

namespace leat {

/// Nothing if `name` is not one of them. Errors are the reader's.
std::optional<OpParams> make_augment_params(std::string_view name,
                                            ParamReader& params);

/// Parameters that several ops share.
Interpolation interpolation_in(ParamReader& params);
FillColour fill_in(ParamReader& params);

}  // namespace leat
