// Texts of the engine as Python's str. Names of files may be any bytes.
#pragma once
#include <pybind11/pybind11.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace leat {

/// Bytes that are no UTF-8 become what `errors` says of Python's decoders.
/// REQUIRES: the GIL.
inline pybind11::str str_of(std::string_view text, const char* errors) {
  auto made = pybind11::reinterpret_steal<pybind11::str>(PyUnicode_DecodeUTF8(
      text.data(), static_cast<Py_ssize_t>(text.size()), errors));
  if (!made) throw pybind11::error_already_set();
  return made;
}

/// For people: each byte that is no UTF-8 is written as "\xff".
inline pybind11::str str_of_message(std::string_view text) {
  return str_of(text, "backslashreplace");
}

/// For keys and values, which may come back (name_of_str): as os.fsdecode()
/// makes it, with lone surrogates.
inline pybind11::str str_of_name(std::string_view name) {
  return str_of(name, "surrogateescape");
}

inline pybind11::list strs_of_names(const std::vector<std::string>& names) {
  pybind11::list made(names.size());
  for (std::size_t i = 0; i < names.size(); ++i)
    made[i] = str_of_name(names[i]);
  return made;
}

/// The bytes that str_of_name() was given. Raises UnicodeEncodeError for other
/// lone surrogates.
inline std::string name_of_str(pybind11::handle name) {
  Py_ssize_t size = 0;
  if (const char* const usual = PyUnicode_AsUTF8AndSize(name.ptr(), &size)) {
    return {usual, static_cast<std::size_t>(size)};
  }
  PyErr_Clear();
  const auto bytes = pybind11::reinterpret_steal<pybind11::bytes>(
      PyUnicode_AsEncodedString(name.ptr(), "utf-8", "surrogateescape"));
  if (!bytes) throw pybind11::error_already_set();
  return bytes;
}

inline std::vector<std::string> names_of_strs(pybind11::handle names) {
  std::vector<std::string> made;
  for (const pybind11::handle name : names) made.push_back(name_of_str(name));
  return made;
}

}  // namespace leat
