#include "errors.h"

#include <string>

#include "functions.h"

namespace leat {

void raise_python(const Error& error) {
  raise_own_exception(error);
  const std::string name(to_string(error.code()));
  const pybind11::object type =
      pybind11::module_::import("leat.errors").attr(name.c_str());
  PyErr_SetString(type.ptr(), error.message().c_str());
  throw pybind11::error_already_set();
}

}  // namespace leat
