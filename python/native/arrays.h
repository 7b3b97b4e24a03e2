// Batches as Python sees them.
#pragma once
#include <pybind11/pybind11.h>

#include "leat/pipeline/batch.h"

namespace leat {

/// A list of (name, value): a NumPy array over the slot's own memory, a pair
/// (values, offsets) of them for what is ragged, or a list of str. Each array
/// keeps its slot; the slot goes back when the last view of it dies.
pybind11::list as_python(Batch batch);

}  // namespace leat
