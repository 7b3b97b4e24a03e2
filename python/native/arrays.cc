#include "arrays.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text.h"

namespace py = pybind11;

namespace leat {
namespace {

py::array array_over(SlotRef slot, DType dtype,
                     std::vector<py::ssize_t> shape) {
  std::byte* data = slot->bytes().data();
  auto owner = std::make_unique<SlotRef>(std::move(slot));
  const py::capsule base(owner.get(), [](void* pointer) {
    delete static_cast<SlotRef*>(pointer);
  });
  (void)owner.release();  // The capsule's now.
  const py::dtype type = numpy_dtype(dtype);
  if (data == nullptr) return py::array(type, std::move(shape));
  return py::array(type, std::move(shape), data, base);
}

/// None where only the first dimension differs.
py::object shapes_of(FieldArray& field, py::ssize_t rows) {
  if (field.shapes == nullptr) return py::none();
  const auto numbers = static_cast<py::ssize_t>(field.shapes->bytes().size() /
                                                sizeof(std::int64_t));
  return array_over(std::move(field.shapes), DType::kInt64,
                    {rows, numbers / rows});
}

py::object value_of(FieldArray field) {
  switch (field.kind) {
    case ArrayKind::kDense:
      return array_over(std::move(field.values), field.dtype,
                        {field.shape.begin(), field.shape.end()});
    case ArrayKind::kRagged: {
      const auto rows = static_cast<py::ssize_t>(field.offsets->bytes().size() /
                                                 sizeof(std::int64_t));
      const py::object shapes = shapes_of(field, rows - 1);
      return py::make_tuple(
          array_over(std::move(field.values), field.dtype,
                     {field.shape.begin(), field.shape.end()}),
          array_over(std::move(field.offsets), DType::kInt64, {rows}), shapes);
    }
    case ArrayKind::kStrings:
      return strs_of_names(field.strings);
  }
  return py::none();
}

}  // namespace

py::dtype numpy_dtype(DType dtype) {
  if (dtype == DType::kBfloat16) {
    return py::module_::import("leat._batches._dtypes")
        .attr("BITS")
        .cast<py::dtype>();
  }
  return py::dtype(std::string(to_string(dtype)));
}

py::list as_python(Batch batch) {
  py::list fields;
  for (FieldArray& field : batch.fields) {
    py::str name = str_of_message(field.name);
    fields.append(py::make_tuple(std::move(name), value_of(std::move(field))));
  }
  return fields;
}

}  // namespace leat
