#include "errors.h"

#include <cerrno>
#include <exception>
#include <string>
#include <system_error>

#include "functions.h"
#include "leat/runtime/start_thread.h"
#include "text.h"

namespace leat {

void translate_exceptions() {
  pybind11::register_local_exception_translator(
      [](std::exception_ptr thrown) {  // NOLINT: pybind11's signature.
        try {
          if (thrown) std::rethrow_exception(thrown);
        } catch (const std::system_error& error) {
          if (error.code().value() != EAGAIN) throw;
          const pybind11::object type = pybind11::module_::import("leat.errors")
                                            .attr("ResourceExhausted");
          PyErr_SetString(type.ptr(), no_threads_text());
        }
      });
}

void raise_python(const Error& error) {
  raise_own_exception(error);
  const std::string name(to_string(error.code()));
  const pybind11::object type =
      pybind11::module_::import("leat.errors").attr(name.c_str());
  PyErr_SetObject(type.ptr(), str_of_message(error.message()).ptr());
  throw pybind11::error_already_set();
}

std::string printable(pybind11::handle object) {
  const auto steal = [](PyObject* made) {
    return pybind11::reinterpret_steal<pybind11::object>(made);
  };
  const pybind11::object text = steal(PyObject_Str(object.ptr()));
  const pybind11::object bytes = steal(
      text ? PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace")
           : nullptr);
  if (!bytes) {
    PyErr_Clear();
    return "(it cannot be printed)";
  }
  return {PyBytes_AS_STRING(bytes.ptr()),
          static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

}  // namespace leat
