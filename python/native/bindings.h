// One function for each binding file.
#pragma once
#include <pybind11/pybind11.h>

namespace leat {

void bind_chunks(pybind11::module_& module);
void bind_columns(pybind11::module_& module);
void bind_dataset(pybind11::module_& module);
void bind_loader(pybind11::module_& module);
void bind_packing(pybind11::module_& module);
void bind_place(pybind11::module_& module);
void bind_peers(pybind11::module_& module);
void bind_table(pybind11::module_& module);
void bind_program(pybind11::module_& module);
void bind_log(pybind11::module_& module);
void bind_lateness(pybind11::module_& module);
void bind_mix(pybind11::module_& module);
void bind_content_hash(pybind11::module_& module);

}  // namespace leat
