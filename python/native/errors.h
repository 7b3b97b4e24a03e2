// The one place where an Error becomes a Python exception.
#pragma once
#include <pybind11/pybind11.h>

#include <string>
#include <utility>

#include "leat/base/result.h"

namespace leat {

/// Makes leat.ResourceExhausted of what the engine throws where the system has
/// no more threads. For this module's functions.
void translate_exceptions();

/// Raises the class of leat.errors that has the name of the code.
[[noreturn]] void raise_python(const Error& error);

/// The text of an object, such as of an exception, for a message; lone
/// surrogates, which no message can hold, are escaped. Raises nothing. The GIL
/// is held.
std::string printable(pybind11::handle object);

/// The value, or raise_python().
template <class T>
T value_or_raise(Result<T>&& result) {
  if (!result) raise_python(result.error());
  return *std::move(result);
}
inline void ok_or_raise(const Result<void>& result) {
  if (!result) raise_python(result.error());
}

}  // namespace leat
