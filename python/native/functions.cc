#include "functions.h"

#include <pybind11/numpy.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "arrays.h"
#include "errors.h"
#include "gil.h"
#include "leat/base/buffer.h"
#include "leat/base/clock.h"
#include "leat/pipeline/program/user_function.h"
#include "text.h"

namespace py = pybind11;

namespace leat {

std::shared_ptr<py::object> held(py::object object) {
  return {new py::object(std::move(object)), [](py::object* kept) {
            if (Py_IsInitialized() == 0)
              return;  // Python has ended: so has it.
            const GilHeld locked;
            delete kept;
          }};
}

namespace {

/// Its own copy: a function may keep what it gets.
py::object as_python(const FunctionInput& input) {
  const auto* data = reinterpret_cast<const char*>(input.bytes.data());
  switch (input.kind) {
    case FunctionInput::Kind::kBytes:
      return py::bytes(data, input.bytes.size());
    case FunctionInput::Kind::kText:
      return str_of_name({data, input.bytes.size()});
    case FunctionInput::Kind::kArray:
      break;
  }
  py::array array(numpy_dtype(input.spec.dtype), input.spec.shape);
  std::ranges::copy(input.bytes, static_cast<std::byte*>(array.mutable_data()));
  if (input.spec.dtype != DType::kBfloat16) return array;
  return py::module_::import("leat._batches._dtypes").attr("to_numpy")(array);
}

/// A str of bytes that are no UTF-8, as str_of_name() gives it, is those bytes.
/// Errors: kInvalidArgument: another lone surrogate
Result<Value> text_value_of(const py::object& made) {
  try {
    return Value(name_of_str(made));
  } catch (const py::error_already_set& raised) {
    if (!raised.matches(PyExc_UnicodeEncodeError)) throw;
    const std::string at = printable(raised.value().attr("start"));
    return Error(ErrorCode::kInvalidArgument,
                 "a function gave a str whose character " + at +
                     " is half of one, a lone surrogate, and no text: leave it "
                     "out, as text.encode(\"utf-8\", \"ignore\").decode() "
                     "does");
  }
}

Result<Value> value_of(const py::object& made) {
  if (py::isinstance<py::str>(made)) return text_value_of(made);
  const py::array array = py::module_::import("leat._functions")
                              .attr("as_array")(made)
                              .cast<py::array>();
  const auto name = py::module_::import("leat._batches._dtypes")
                        .attr("name_of")(array.dtype())
                        .cast<std::string>();
  const std::optional<DType> dtype = dtype_named(name);
  if (!dtype) {
    return Error(
        ErrorCode::kInvalidArgument,
        "a function gave an array of " + name + "; it gives numbers, or a str");
  }
  ArrayValue value{.spec = {.dtype = *dtype, .shape = {}},
                   .bytes = Buffer(static_cast<std::size_t>(array.nbytes()))};
  value.spec.shape.assign(array.shape(), array.shape() + array.ndim());
  const std::span<const std::byte> bytes(
      static_cast<const std::byte*>(array.data()), value.bytes.size());
  std::ranges::copy(bytes, value.bytes.span().begin());
  return Value(std::move(value));
}

class PythonFunction final : public UserFunction {
 public:
  /// `function` takes the value, the seed, the epoch and the sample's number.
  explicit PythonFunction(const py::object& function)
      : function_(held(function)) {}

  Result<Value> call(const FunctionInput& input,
                     const SampleRandom& random) const override {
    return locked<Value>([&]() -> Result<Value> {
      return value_of(call_python(*function_, as_python(input), random.seed,
                                  random.epoch, random.sample.value));
    });
  }

  Result<std::vector<Value>> call_joint(
      std::span<const FunctionInput> inputs,
      const SampleRandom& random) const override {
    using Values = std::vector<Value>;
    return locked<Values>([&]() -> Result<Values> {
      py::tuple values(inputs.size());
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        values[i] = as_python(inputs[i]);
      }
      // As many as there are fields: leat._functions sees to that.
      const py::tuple made = call_python(*function_, values, random.seed,
                                         random.epoch, random.sample.value);
      Values all;
      for (const py::handle one : made) {
        LEAT_TRY(Value value,
                 value_of(py::reinterpret_borrow<py::object>(one)));
        all.push_back(std::move(value));
      }
      return all;
    });
  }

  Nanoseconds waited_for_lock() const override {
    return Nanoseconds(waited_.load(std::memory_order_relaxed));
  }

 private:
  /// Runs `work` with the GIL, and turns what it raises into an error.
  template <class T, class Work>
  Result<T> locked(const Work& work) const {
    const TimePoint asked = SteadyClock().now();
    const GilHeld gil;
    waited_.fetch_add((SteadyClock().now() - asked).count(),
                      std::memory_order_relaxed);
    try {
      try {
        return work();
      } catch (const py::error_already_set& raised) {
        return error_raised(raised);
      }
    } catch (const std::exception& other) {
      // None leaves the engine's thread: it would end the process.
      return Error(ErrorCode::kInvalidArgument,
                   std::string("the result of a function of yours cannot be "
                               "taken: ") +
                       other.what());
    }
  }

  static Error error_raised(const py::error_already_set& raised) {
    if (raised.trace()) {
      PyException_SetTraceback(raised.value().ptr(), raised.trace().ptr());
    }
    // It speaks of the sample, not of itself.
    for (const ErrorCode code : {ErrorCode::kSkipped, ErrorCode::kCorrupt}) {
      const std::string own(to_string(code));
      if (raised.matches(
              py::module_::import("leat.errors").attr(own.c_str()))) {
        return Error(code, printable(raised.value()))
            .because_of(held(raised.value()));
      }
    }
    return Error(ErrorCode::kInvalidArgument,
                 "a function of yours raised " +
                     printable(raised.type().attr("__name__")))
        .because_of(held(raised.value()));
  }

  std::shared_ptr<py::object> function_;
  mutable std::atomic<Nanoseconds::rep> waited_ = 0;
};

}  // namespace

std::vector<OpSpec> ops_with_functions(const std::string& ops_json,
                                       const py::list& functions) {
  std::vector<OpSpec> specs = value_or_raise(ops_from_json(ops_json));
  std::size_t next = 0;
  for (OpSpec& spec : specs) {
    if (spec.name != "python" || next == functions.size()) continue;
    const py::object call = functions[next++];
    spec.function = std::make_shared<const PythonFunction>(call);
  }
  return specs;
}

void raise_own_exception(const Error& error) {
  if (error.cause() == nullptr) return;
  const py::module_ functions = py::module_::import("leat._functions");
  // held() made it. All copies of the error have this one, and the GIL guards
  // it.
  auto& kept = *static_cast<py::object*>(
      const_cast<void*>(error.cause().get()));  // NOLINT: see above.
  const py::tuple both = functions.attr("to_raise_and_to_keep")(kept);
  const py::object value = both[0];
  kept = both[1];
  functions.attr("add_note")(value, str_of_message(error.message()));
  // Takes a reference to each of the three.
  PyErr_Restore(py::type::of(value).release().ptr(), value.inc_ref().ptr(),
                PyException_GetTraceback(value.ptr()));
  throw py::error_already_set();
}

}  // namespace leat
