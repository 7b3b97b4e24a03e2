// A folder of objects that may be written: for leat pack.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "bindings.h"
#include "errors.h"
#include "interruptible.h"
#include "leat/base/env.h"
#include "leat/dataset/catalogue.h"
#include "leat/engine/stores.h"

namespace py = pybind11;

namespace leat {
namespace {

/// Threads: any.
class Place {
 public:
  Place(const std::string& url, const StoreOptions& options)
      : opened_(
            value_or_raise(open_store(url, options, process_env(), nullptr))) {}

  void write(const std::string& name, const py::buffer& data) {
    const py::buffer_info info = data.request();
    const std::span<const std::byte> bytes{
        static_cast<const std::byte*>(info.ptr),
        static_cast<std::size_t>(info.size * info.itemsize)};
    run_interruptibly([&](const std::stop_token& stop) {
      return opened_.store->write(key_of(name), bytes, stop);
    });
  }

  py::bytes read(const std::string& name, std::uint64_t most_bytes) {
    const Buffer bytes = run_interruptibly([&](const std::stop_token& stop) {
      return read_object(*opened_.store, key_of(name), most_bytes, stop);
    });
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  /// The size of an object; None: there is none of this name.
  std::optional<std::uint64_t> size(const std::string& name) {
    return run_interruptibly([&](const std::stop_token& stop)
                                 -> Result<std::optional<std::uint64_t>> {
      const Result<ObjectInfo> found = opened_.store->stat(key_of(name), stop);
      if (found) return found->size_bytes;
      if (found.error().code() != ErrorCode::kNotFound) {
        return found.error();
      }
      return std::nullopt;
    });
  }

  std::string url_of(const std::string& name) const {
    return opened_.store->url_of(key_of(name));
  }

 private:
  std::string key_of(const std::string& name) const {
    return key_in_store(opened_.prefix, name);
  }

  const OpenedStore opened_;
};

}  // namespace

void bind_place(py::module_& module) {
  py::class_<Place>(module, "Place")
      .def(py::init<const std::string&, const StoreOptions&>(), py::arg("url"),
           py::arg("store"))
      .def("write", &Place::write, py::arg("name"), py::arg("data"))
      .def("read", &Place::read, py::arg("name"), py::arg("most_bytes"))
      .def("size", &Place::size, py::arg("name"))
      .def("url_of", &Place::url_of, py::arg("name"));
}

}  // namespace leat
