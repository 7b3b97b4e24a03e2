#include "leat/engine/dataset.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.h"
#include "errors.h"

namespace py = pybind11;

namespace leat {
namespace {

std::string_view name_of(FieldKind kind) {
  switch (kind) {
    case FieldKind::kBytes:
      return "bytes";
    case FieldKind::kInt64:
      return "int64";
    case FieldKind::kFloat64:
      return "float64";
    case FieldKind::kString:
      return "string";
  }
  return "bytes";
}

py::dict fields_of(const Dataset& dataset) {
  py::dict fields;
  for (const FieldSpec& field : dataset.catalogue->fields()) {
    fields[py::str(field.name)] = py::str(std::string(name_of(field.kind)));
  }
  return fields;
}

/// Where a field's bytes lie: the object's key, offset and length; None where
/// the sample lacks it.
std::optional<std::tuple<std::string, std::uint64_t, std::uint64_t>> range_of(
    const Dataset& dataset, const std::string& field, std::uint64_t sample) {
  const Catalogue& catalogue = *dataset.catalogue;
  const std::size_t index = catalogue.field_index(field);
  if (index == catalogue.fields().size() ||
      catalogue.fields()[index].kind != FieldKind::kBytes) {
    throw py::key_error("no such field of bytes");
  }
  if (sample >= catalogue.samples()) throw py::index_error("no such sample");
  const ByteRange range = catalogue.range(index, SampleId{sample});
  if (range.is_missing()) return std::nullopt;
  return std::tuple(std::string(catalogue.object(range.object).key),
                    range.offset, range.length_bytes);
}

Dataset open(const std::string& url, StoreOptions store,
             const std::string& refresh) {
  CatalogueOptions options;
  options.refresh = value_or_raise(Refresh::parse(refresh));
  // Listing a large bucket takes minutes, and Ctrl-C must end it.
  std::stop_source stop;
  Result<Dataset> dataset = Error(ErrorCode::kInternal, "not opened yet");
  std::atomic<bool> is_done = false;
  std::jthread opener([&] {
    dataset =
        open_dataset(url, store, options, process_env(), stop.get_token());
    is_done = true;
  });
  {
    py::gil_scoped_release unlocked;
    while (!is_done) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      py::gil_scoped_acquire locked;
      if (PyErr_CheckSignals() != 0) {
        stop.request_stop();
        py::gil_scoped_release joining;
        opener.join();
        break;
      }
    }
    if (opener.joinable()) opener.join();
  }
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();
  return value_or_raise(std::move(dataset));
}

}  // namespace

void bind_dataset(py::module_& module) {
  py::class_<StoreOptions>(module, "StoreOptions")
      .def(py::init([](std::optional<std::string> endpoint_url,
                       std::optional<std::string> region,
                       std::optional<std::string> profile, bool no_sign_request,
                       bool requester_pays, std::string credential_helper) {
             StoreOptions options;
             options.endpoint_url = endpoint_url.value_or("");
             options.region = region.value_or("");
             options.profile = profile.value_or("");
             options.no_sign_request = no_sign_request;
             options.requester_pays = requester_pays;
             options.credential_helper = std::move(credential_helper);
             return options;
           }),
           py::kw_only(), py::arg("endpoint_url") = py::none(),
           py::arg("region") = py::none(), py::arg("profile") = py::none(),
           py::arg("no_sign_request") = false,
           py::arg("requester_pays") = false,
           py::arg("credential_helper") = "");

  py::class_<Dataset>(module, "Dataset")
      .def(py::init(&open), py::arg("url"), py::arg("store"),
           py::arg("refresh"))
      .def_readonly("url", &Dataset::url)
      .def_readonly("catalogue_source", &Dataset::catalogue_source)
      .def_property_readonly(
          "samples", [](const Dataset& d) { return d.catalogue->samples(); })
      .def_property_readonly(
          "objects", [](const Dataset& d) { return d.catalogue->objects(); })
      .def_property_readonly(
          "bytes", [](const Dataset& d) { return d.catalogue->total_bytes(); })
      .def_property_readonly("fields", &fields_of)
      .def_property_readonly(
          "classes", [](const Dataset& d) { return d.catalogue->classes(); })
      .def_property_readonly("has_shards",
                             [](const Dataset& d) {
                               return d.catalogue->layout() == Layout::kShards;
                             })
      .def_property_readonly(
          "digest",
          [](const Dataset& d) { return d.catalogue->digest().hex(); })
      .def("range", &range_of, py::arg("field"), py::arg("sample"))
      .def("key", [](const Dataset& d, std::uint64_t sample) {
        if (sample >= d.catalogue->samples()) {
          throw py::index_error("no such sample");
        }
        return std::string(d.catalogue->key(SampleId{sample}));
      });
}

}  // namespace leat
