// The samples of a batch mixed where they lie: leat.ops.MixUp and CutMix.
#include <pybind11/pybind11.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "bindings.h"
#include "gil.h"
#include "leat/pipeline/ops/mix_samples.h"
#include "leat/pipeline/program/tensor.h"

namespace py = pybind11;

namespace leat {
namespace {

/// REQUIRES: `info` was asked to be writable.
std::span<std::byte> bytes_in(const py::buffer_info& info) {
  if (info.ndim != 1 || info.itemsize != 1 || info.strides[0] != 1) {
    throw py::value_error(
        "a batch must be writable bytes, one after the "
        "other");
  }
  return {static_cast<std::byte*>(info.ptr),
          static_cast<std::size_t>(info.size)};
}

void blend(const py::buffer& batch, std::size_t samples,
           const std::string& dtype, double share) {
  const py::buffer_info info = batch.request(/*writable=*/true);
  const std::span<std::byte> bytes = bytes_in(info);
  const std::optional<DType> type = dtype_named(dtype);
  if (!type || !can_blend(*type)) {
    throw py::value_error(dtype + " are no floats to blend");
  }
  if (samples == 0 || bytes.size() % (samples * size_bytes_of(*type)) != 0) {
    throw py::value_error("the batch holds no samples of equal size");
  }
  const GilReleased released;
  blend_samples(bytes, samples, *type, share);
}

void paste(const py::buffer& batch, std::size_t planes, std::size_t rows,
           std::size_t row_bytes, std::size_t first_row, std::size_t part_rows,
           std::size_t first_byte, std::size_t part_bytes) {
  const py::buffer_info info = batch.request(/*writable=*/true);
  const std::span<std::byte> bytes = bytes_in(info);
  const std::size_t sample_bytes = planes * rows * row_bytes;
  if (sample_bytes == 0 || bytes.size() % sample_bytes != 0) {
    throw py::value_error("the batch holds no samples of that shape");
  }
  if (first_row + part_rows > rows || first_byte + part_bytes > row_bytes) {
    throw py::value_error("the part lies beyond the sample");
  }
  const GilReleased released;
  paste_samples(bytes, {planes, rows, row_bytes},
                {first_row, part_rows, first_byte, part_bytes});
}

}  // namespace

void bind_mix(py::module_& module) {
  module.def("blend_samples", &blend, py::arg("batch"), py::arg("samples"),
             py::arg("dtype"), py::arg("share"));
  module.def("paste_samples", &paste, py::arg("batch"), py::kw_only(),
             py::arg("planes"), py::arg("rows"), py::arg("row_bytes"),
             py::arg("first_row"), py::arg("part_rows"), py::arg("first_byte"),
             py::arg("part_bytes"));
}

}  // namespace leat
