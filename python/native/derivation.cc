#include "derivation.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "errors.h"
#include "functions.h"
#include "gil.h"

namespace py = pybind11;

namespace leat {
namespace {

/// A copy, made while others may run.
py::bytes as_bytes_object(std::span<const std::byte> bytes) {
  auto made = py::reinterpret_steal<py::bytes>(PyBytes_FromStringAndSize(
      nullptr, static_cast<py::ssize_t>(bytes.size())));
  if (!made) throw py::error_already_set();
  char* const into = PyBytes_AS_STRING(made.ptr());
  const GilReleased unlocked;
  std::ranges::copy(as_text(bytes), into);
  return made;
}

Buffer copy_of(const py::buffer& made) {
  const py::buffer_info info = made.request();
  Buffer copy(static_cast<std::size_t>(info.size * info.itemsize));
  const GilReleased unlocked;
  if (copy.size() != 0) std::memcpy(copy.data(), info.ptr, copy.size());
  return copy;
}

class PythonDerivation final : public Derivation {
 public:
  explicit PythonDerivation(const py::object& function)
      : function_(held(function)) {}

  Result<Buffer> derive(const DerivedKey& key, std::span<const std::byte> notes,
                        std::span<const std::byte> bytes) const override {
    const GilHeld locked;
    try {
      const py::buffer made = call_python(
          *function_, key.part, key.notes_offset, as_bytes_object(notes),
          key.offset, as_bytes_object(bytes));
      return copy_of(made);
    } catch (const py::error_already_set& raised) {
      return error_of(raised);
    }
  }

 private:
  std::shared_ptr<py::object> function_;
};

}  // namespace

std::shared_ptr<const Derivation> derivation_of(const py::object& function) {
  return std::make_shared<const PythonDerivation>(function);
}

Error error_of(const py::error_already_set& raised) {
  const std::string name = printable(raised.type().attr("__name__"));
  const std::string text = printable(raised.value());
  for (const ErrorCode code :
       {ErrorCode::kInvalidArgument, ErrorCode::kNotFound,
        ErrorCode::kPermissionDenied, ErrorCode::kUnavailable,
        ErrorCode::kThrottled, ErrorCode::kDeadlineExceeded,
        ErrorCode::kResourceExhausted, ErrorCode::kCancelled}) {
    if (name == to_string(code)) return {code, text};
  }
  return {ErrorCode::kCorrupt, name == "Corrupt" ? text : name + ": " + text};
}

}  // namespace leat
