// Whole columns of a catalogue as arrays, without a Python object for each
// sample: what leat.Dataset.query hands to DuckDB.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "bindings.h"
#include "gil.h"
#include "leat/engine/dataset.h"

namespace py = pybind11;

namespace leat {
namespace {

using ColumnNumbers = py::array_t<std::int64_t>;

/// Texts end to end: where each begins and the last one ends, and their bytes.
using ColumnTexts = std::pair<ColumnNumbers, py::array_t<std::uint8_t>>;

template <class TextOf>
ColumnTexts texts_of(std::uint64_t count, const TextOf& text_of) {
  ColumnNumbers ends(static_cast<py::ssize_t>(count + 1));
  std::int64_t* const at = ends.mutable_data();
  at[0] = 0;
  {
    const GilReleased unlocked;
    for (std::uint64_t i = 0; i < count; ++i) {
      at[i + 1] = at[i] + static_cast<std::int64_t>(text_of(i).size());
    }
  }
  py::array_t<std::uint8_t> bytes(at[count]);
  std::uint8_t* const to = bytes.mutable_data();
  {
    const GilReleased unlocked;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::string_view text = text_of(i);
      if (!text.empty()) std::memcpy(to + at[i], text.data(), text.size());
    }
  }
  return {std::move(ends), std::move(bytes)};
}

std::size_t field_of(const Catalogue& catalogue, const std::string& name,
                     FieldKind kind) {
  const std::size_t field = catalogue.field_index(name);
  if (field == catalogue.fields().size() ||
      catalogue.fields()[field].kind != kind) {
    throw py::key_error(name);
  }
  return field;
}

ColumnTexts column_texts(const Dataset& dataset, const std::string& name) {
  const Catalogue& catalogue = *dataset.catalogue;
  const std::size_t field = field_of(catalogue, name, FieldKind::kString);
  return texts_of(catalogue.samples(), [&](std::uint64_t i) {
    return catalogue.string(field, SampleId{i});
  });
}

ColumnTexts sample_keys(const Dataset& dataset) {
  const Catalogue& catalogue = *dataset.catalogue;
  return texts_of(catalogue.samples(),
                  [&](std::uint64_t i) { return catalogue.key(SampleId{i}); });
}

ColumnTexts object_keys(const Dataset& dataset) {
  const Catalogue& catalogue = *dataset.catalogue;
  return texts_of(catalogue.objects(), [&](std::uint64_t i) {
    return catalogue.object(ObjectIndex{static_cast<std::uint32_t>(i)}).key;
  });
}

/// The object of each sample (-1 if it lacks the field), the offset, and the
/// size of that object.
std::tuple<ColumnNumbers, ColumnNumbers, ColumnNumbers> ranges(
    const Dataset& dataset, const std::string& name) {
  const Catalogue& catalogue = *dataset.catalogue;
  const std::size_t field = field_of(catalogue, name, FieldKind::kBytes);
  const auto rows = static_cast<py::ssize_t>(catalogue.samples());
  ColumnNumbers objects(rows);
  ColumnNumbers offsets(rows);
  ColumnNumbers sizes(rows);
  std::int64_t* const object = objects.mutable_data();
  std::int64_t* const offset = offsets.mutable_data();
  std::int64_t* const size = sizes.mutable_data();
  {
    const GilReleased unlocked;
    for (py::ssize_t i = 0; i < rows; ++i) {
      const ByteRange range =
          catalogue.range(field, SampleId{static_cast<std::uint64_t>(i)});
      const bool is_there = !range.is_missing();
      object[i] = is_there ? std::int64_t{range.object.value} : -1;
      offset[i] = is_there ? static_cast<std::int64_t>(range.offset) : 0;
      size[i] = is_there ? static_cast<std::int64_t>(
                               catalogue.object(range.object).size_bytes)
                         : 0;
    }
  }
  return {std::move(objects), std::move(offsets), std::move(sizes)};
}

}  // namespace

void bind_columns(py::module_& module) {
  module.def("column_texts", &column_texts, py::arg("dataset"),
             py::arg("name"));
  module.def("sample_keys", &sample_keys, py::arg("dataset"));
  module.def("object_keys", &object_keys, py::arg("dataset"));
  module.def("ranges", &ranges, py::arg("dataset"), py::arg("name"));
}

}  // namespace leat
