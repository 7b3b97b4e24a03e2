// leat._native: the engine as Python sees it. Nothing here is public: the
// package's own modules are.
#include <pybind11/pybind11.h>

#include "bindings.h"
#include "errors.h"

#ifndef LEAT_VERSION
#error "LEAT_VERSION comes from CMake"
#endif

// Functions that several threads may call at once say so, here as in C++
// ("Threads:"); an interpreter without a GIL need not bring it back for this
// module.
#if PYBIND11_VERSION_HEX >= 0x020D0000
PYBIND11_MODULE(_native, module, pybind11::mod_gil_not_used()) {
#else
PYBIND11_MODULE(_native, module) {
#endif
  module.doc() = "The engine of leat. Use the package leat, not this.";
  module.attr("__version__") = LEAT_VERSION;
  leat::translate_exceptions();
  leat::bind_chunks(module);
  leat::bind_dataset(module);
  leat::bind_columns(module);
  leat::bind_loader(module);
  leat::bind_packing(module);
  leat::bind_place(module);
  leat::bind_peers(module);
  leat::bind_log(module);
  leat::bind_lateness(module);
  leat::bind_program(module);
  leat::bind_mix(module);
  leat::bind_table(module);
  leat::bind_content_hash(module);
}
