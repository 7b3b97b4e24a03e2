#include "leat/profile/lateness.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <utility>
#include <vector>

#include "bindings.h"

namespace py = pybind11;

namespace leat {

void bind_lateness(py::module_& module) {
  py::class_<Lateness>(module, "Lateness")
      .def(py::init<>())
      .def(
          "add",
          [](Lateness& lateness, const py::list& ranks) {
            std::vector<RankSteps> steps;
            for (const py::handle item : ranks) {
              const auto rank = py::cast<py::dict>(item);
              RankSteps one;
              one.seconds = py::cast<double>(rank["seconds"]);
              one.waits = py::cast<std::vector<double>>(rank["waits"]);
              one.causes = py::cast<std::vector<std::string>>(rank["causes"]);
              one.own = py::cast<std::vector<double>>(rank["own"]);
              if (one.causes.size() != one.waits.size() ||
                  (!one.own.empty() && one.own.size() != one.waits.size())) {
                throw py::value_error("steps of unequal length");
              }
              steps.push_back(std::move(one));
            }
            lateness.add(steps);
          },
          py::arg("ranks"))
      .def_property_readonly("steps", &Lateness::steps)
      .def("worst", [](const Lateness& lateness) -> py::object {
        const auto worst = lateness.worst();
        if (!worst) return py::none();
        py::dict said;
        said["rank"] = worst->rank;
        said["cause"] = worst->cause;
        said["fraction"] = worst->fraction;
        return said;
      });
}

}  // namespace leat
