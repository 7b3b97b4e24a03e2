// Which field of the catalogue an op reads.
#pragma once
#include <cstddef>
#include <vector>

#include "leat/base/result.h"
#include "leat/dataset/catalogue.h"
#include "leat/pipeline/ops/op.h"

namespace leat {

/// The field that `op`, which begins a chain, names. If it names none: the only
/// field of bytes, else the only one with a usual name.
///
/// Errors:
///   kInvalidArgument  there is none, or several, or it cannot be read; the
///                     message lists the fields there are
Result<std::size_t> field_read_by(const Op& op,
                                  const std::vector<FieldSpec>& fields);

}  // namespace leat
