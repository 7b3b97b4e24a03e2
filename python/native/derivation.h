// Objects that Python makes of parts of others.
#pragma once
#include <pybind11/pybind11.h>

#include <memory>

#include "leat/store/layers/derived_store.h"

namespace leat {

/// `function(part, notes_offset, notes, offset, bytes)` gives a buffer. An
/// exception becomes an error of its class of leat.errors, else kCorrupt.
/// REQUIRES: the GIL is held.
std::shared_ptr<const Derivation> derivation_of(
    const pybind11::object& function);

/// An exception of Python's as an error, named as above. REQUIRES: as above.
Error error_of(const pybind11::error_already_set& raised);

}  // namespace leat
