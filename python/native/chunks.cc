// Undoes the filters of stored chunks.
#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "bindings.h"
#include "errors.h"
#include "gil.h"
#include "leat/base/buffer.h"
#include "leat/base/hash.h"
#include "leat/codec/hdf5/chunk_filters.h"

namespace py = pybind11;

namespace leat {
namespace {

std::span<const std::byte> bytes_of(const py::bytes& bytes) {
  return as_bytes(std::string_view(bytes));
}

py::bytes bytes_from(std::span<const std::byte> bytes) {
  const std::string_view text = as_text(bytes);
  return py::bytes(text.data(), text.size());
}

py::bytes undo_lzf_of(const py::bytes& bytes, std::uint64_t size_bytes) {
  const auto given = bytes_of(bytes);
  Result<Buffer> made = [&] {
    const GilReleased unlocked;
    return undo_lzf(given, size_bytes);
  }();
  return bytes_from(value_or_raise(std::move(made)).span());
}

py::bytes undo_shuffle_of(const py::bytes& bytes, std::size_t item_bytes) {
  const auto given = bytes_of(bytes);
  const Buffer made = [&] {
    const GilReleased unlocked;
    return undo_shuffle(given, std::max<std::size_t>(item_bytes, 1));
  }();
  return bytes_from(made.span());
}

py::bytes undo_fletcher32_of(const py::bytes& bytes) {
  const auto given = bytes_of(bytes);
  Result<std::span<const std::byte>> chunk = [&] {
    const GilReleased unlocked;
    return undo_fletcher32(given);
  }();
  return bytes_from(value_or_raise(std::move(chunk)));
}

std::uint32_t crc32c_of(const py::bytes& bytes) {
  const auto given = bytes_of(bytes);
  const GilReleased unlocked;
  return crc32c(given);
}

}  // namespace

void bind_chunks(py::module_& module) {
  module.def("undo_lzf", &undo_lzf_of, py::arg("bytes"), py::arg("size_bytes"));
  module.def("undo_shuffle", &undo_shuffle_of, py::arg("bytes"),
             py::arg("item_bytes"));
  module.def("undo_fletcher32", &undo_fletcher32_of, py::arg("bytes"));
  module.def("crc32c", &crc32c_of, py::arg("bytes"));
}

}  // namespace leat
