// Batches as Python sees them.
#pragma once
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include "leat/pipeline/batch.h"

namespace leat {

/// NumPy's type; for bfloat16, which NumPy lacks, leat._batches._dtypes.BITS.
pybind11::dtype numpy_dtype(DType dtype);

/// A list of (name, value): a NumPy array over the slot's own memory, a triple
/// (values, offsets, shapes) of them for a ragged field, or a list of str. Each
/// array keeps its slot; the slot goes back when the last view of it dies.
pybind11::list as_python(Batch batch);

}  // namespace leat
