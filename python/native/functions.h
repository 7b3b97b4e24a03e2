// Functions of Python in a chain of ops.
#pragma once
#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <vector>

#include "leat/pipeline/program/program.h"

namespace leat {

/// A Python object that any thread may let go of.
std::shared_ptr<pybind11::object> held(pybind11::object object);

/// Reads the ops with ops_from_json(), and gives the `python` ops among them
/// the functions of `functions`, in their order.
std::vector<OpSpec> ops_with_functions(const std::string& ops_json,
                                       const pybind11::list& functions);

/// Raises a copy of the exception that a function raised, with `message` added
/// to it; does nothing if the error has another cause. The one that is kept
/// never has the frames that it is raised through: they may hold the loader,
/// which holds the error, where no collector sees it. The GIL is held.
void raise_own_exception(const Error& error);

}  // namespace leat
