#include <pybind11/pybind11.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings.h"
#include "leat/base/buffer.h"
#include "leat/pipeline/content_hash.h"

namespace py = pybind11;

namespace leat {
namespace {

// The sum of `hash_of_sample`s as a Python int, so that they simply add up.
py::int_ hash_of_sample(std::uint64_t epoch, std::uint64_t sample,
                        const py::iterable& fields) {
  ContentHasher hasher(epoch, SampleId{sample});
  for (const py::handle item : fields) {
    const auto pair = py::cast<py::tuple>(item);
    const auto name = py::cast<std::string>(pair[0]);
    const py::buffer_info bytes = py::cast<py::buffer>(pair[1]).request();
    if (bytes.ndim > 0 && PyBuffer_IsContiguous(bytes.view(), 'C') == 0) {
      throw py::value_error("the bytes of a field must be contiguous");
    }
    hasher.field(name, {static_cast<const std::byte*>(bytes.ptr),
                        static_cast<std::size_t>(bytes.size * bytes.itemsize)});
  }
  const std::string hex = hasher.digest().hex();
  return py::reinterpret_steal<py::int_>(
      PyLong_FromString(hex.c_str(), nullptr, 16));
}

}  // namespace

void bind_content_hash(py::module_& module) {
  module.def("hash_of_sample", &hash_of_sample, py::arg("epoch"),
             py::arg("sample"), py::arg("fields"));
}

}  // namespace leat
