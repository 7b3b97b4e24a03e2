// A chain of ops over bytes at hand, without a loader: leat.ops.Chain.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "arrays.h"
#include "bindings.h"
#include "errors.h"
#include "functions.h"
#include "gil.h"
#include "leat/pipeline/ops/image_program.h"
#include "leat/pipeline/ops/op.h"
#include "leat/pipeline/ops/op_table.h"
#include "leat/pipeline/program/program.h"
#include "leat/pipeline/program/value.h"
#include "text.h"

namespace py = pybind11;

namespace leat {
namespace {

constexpr const char* kDefaultField = "data";

/// The fields that the ops read: there is no catalogue to ask.
Result<std::vector<FieldSpec>> fields_of(const std::vector<OpSpec>& specs) {
  std::vector<FieldSpec> fields;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    LEAT_TRY(const Op op, make_op(specs[i], i));
    const bool opens = opens_chain(op) || (fields.empty() && specs[i].function);
    if (!opens) continue;
    const FieldSpec field{op.field.empty() ? kDefaultField : op.field};
    if (std::find(fields.begin(), fields.end(), field) == fields.end()) {
      fields.push_back(field);
    }
  }
  return fields;
}

Result<OutputField> compile(const std::vector<OpSpec>& specs) {
  LEAT_TRY(const auto fields, fields_of(specs));
  LEAT_TRY(auto outputs, compile_ops(specs, fields));
  if (outputs.size() != 1) {
    return Error(ErrorCode::kInvalidArgument,
                 "a Chain turns one field of bytes into one value: it needs "
                 "exactly one op that reads bytes, such as DecodeImage");
  }
  return std::move(outputs[0]);
}

/// The ops behind DecodeImage, on what it would have decoded; null of chains
/// that are no ops of images alone.
Result<std::shared_ptr<const PixelsProgram>> compile_behind_decoder(
    const std::vector<OpSpec>& specs, const OutputField& output) {
  std::shared_ptr<const PixelsProgram> none;
  if (output.program == nullptr) return none;
  std::vector<Op> ops;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    LEAT_TRY(Op op, make_op(specs[i], i));
    ops.push_back(std::move(op));
  }
  const Op first = ops.front();
  const auto* decode = std::get_if<DecodeImageOp>(&first.params);
  if (decode == nullptr || decode->is_mask()) return none;
  ops.erase(ops.begin());
  // The name that draws depend on.
  const std::string field = first.to.empty() ? "image" : first.to;
  return compile_pixels_program(*decode, std::move(ops), field,
                                PixelLayout::kHwc, "a Chain got");
}

/// An array in C order. Errors: kInvalidArgument: it is in another order, or
/// its numbers are
Result<TensorSpec> spec_of(const py::buffer_info& info) {
  TensorSpec spec;
  py::ssize_t step = info.itemsize;
  for (py::ssize_t i = info.ndim; i-- > 0;) {
    const auto at = static_cast<std::size_t>(i);
    if (info.shape[at] != 1 && info.strides[at] != step) {
      return Error(ErrorCode::kInvalidArgument,
                   "the pixels lie apart: give a Chain "
                   "numpy.ascontiguousarray(pixels)");
    }
    step *= info.shape[at];
  }
  const py::dtype type(info);
  if (!type.attr("isnative").cast<bool>()) {
    return Error(ErrorCode::kInvalidArgument,
                 "the bytes of each pixel stand in another order than this "
                 "machine's: give a Chain pixels.astype(\"" +
                     printable(type.attr("newbyteorder")("=").attr("str")) +
                     "\")");
  }
  const auto name = type.attr("name").cast<std::string>();
  const std::optional<DType> dtype = dtype_named(name);
  if (!dtype) {
    return Error(ErrorCode::kInvalidArgument,
                 "a Chain takes bytes or pixels of uint8, not " + name);
  }
  spec.dtype = *dtype;
  spec.shape.assign(info.shape.begin(), info.shape.end());
  return spec;
}

/// Threads: any; each run borrows a Scratch.
class ProgramRunner {
 public:
  ProgramRunner(const std::string& ops_json, const py::list& functions)
      : ProgramRunner(ops_with_functions(ops_json, functions)) {}

  py::object run(const py::buffer& data, std::uint64_t seed,
                 std::uint64_t epoch, std::uint64_t sample) {
    const py::buffer_info info = data.request();
    const SampleRandom random{seed, epoch, SampleId{sample}};
    if (info.ndim > 1) return run_pixels(info, random);
    const std::span<const std::byte> encoded = bytes_in(info);
    return output_.program != nullptr ? run_program(encoded, random)
                                      : run_value_program(encoded, random);
  }

  std::string drawn(const py::buffer& data, std::uint64_t seed,
                    std::uint64_t epoch, std::uint64_t sample) {
    const py::buffer_info info = data.request();
    if (output_.program == nullptr) return "[]";
    if (info.ndim > 1) {
      return value_or_raise(
          pixels_program().drawn(value_or_raise(spec_of(info)),
                                 SampleRandom{seed, epoch, SampleId{sample}}));
    }
    return value_or_raise(output_.program->drawn(
        bytes_in(info), SampleRandom{seed, epoch, SampleId{sample}}));
  }

 private:
  explicit ProgramRunner(const std::vector<OpSpec>& specs)
      : output_(value_or_raise(compile(specs))),
        pixels_(value_or_raise(compile_behind_decoder(specs, output_))) {}

  static std::span<const std::byte> bytes_in(const py::buffer_info& info) {
    if (info.ndim != 1 || info.strides[0] != info.itemsize) {
      throw py::value_error("data must be bytes, or contiguous like bytes");
    }
    return {static_cast<const std::byte*>(info.ptr),
            static_cast<std::size_t>(info.size * info.itemsize)};
  }

  /// Runs `work` with a scratch of its own while Python runs on.
  template <class Work>
  auto unlocked(const Work& work) {
    const GilReleased released;
    ScratchRef scratch = borrow();
    RunNotes notes;
    auto done = work(*scratch, notes);
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(scratch));
    return done;
  }

  ScratchRef borrow() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return make_scratch();
    ScratchRef scratch = std::move(idle_.back());
    idle_.pop_back();
    return scratch;
  }

  py::object run_program(std::span<const std::byte> encoded,
                         const SampleRandom& random) {
    const TensorSpec spec =
        value_or_raise(output_.program->output_for(encoded));
    py::array array(numpy_dtype(spec.dtype), spec.shape);
    const std::span<std::byte> out{
        static_cast<std::byte*>(array.mutable_data()), spec.size_bytes()};
    ok_or_raise(unlocked([&](Scratch& scratch, RunNotes& notes) {
      return output_.program->run(encoded, random, scratch, out, notes);
    }));
    return array;
  }

  const PixelsProgram& pixels_program() const {
    if (pixels_ == nullptr) {
      raise_python(
          Error(ErrorCode::kInvalidArgument,
                "only a Chain that begins with DecodeImage and calls no "
                "function takes pixels: give it bytes"));
    }
    return *pixels_;
  }

  py::object run_pixels(const py::buffer_info& info,
                        const SampleRandom& random) {
    const PixelsProgram& program = pixels_program();
    const TensorSpec given = value_or_raise(spec_of(info));
    const TensorSpec spec = value_or_raise(program.output_for(given));
    const std::span<const std::byte> pixels{
        static_cast<const std::byte*>(info.ptr), given.size_bytes()};
    py::array array(numpy_dtype(spec.dtype), spec.shape);
    const std::span<std::byte> out{
        static_cast<std::byte*>(array.mutable_data()), spec.size_bytes()};
    ok_or_raise(unlocked([&](Scratch& scratch, RunNotes& notes) {
      return program.run(given, pixels, random, scratch, out, notes);
    }));
    return array;
  }

  py::object run_value_program(std::span<const std::byte> encoded,
                               const SampleRandom& random) {
    const Value value =
        value_or_raise(unlocked([&](Scratch& scratch, RunNotes& notes) {
          return output_.value_program->run(encoded, random, scratch, notes);
        }));
    if (const auto* text = std::get_if<std::string>(&value)) {
      return str_of_name(*text);
    }
    const auto& made = std::get<ArrayValue>(value);
    py::array array(numpy_dtype(made.spec.dtype), made.spec.shape);
    std::ranges::copy(made.bytes.span(),
                      static_cast<std::byte*>(array.mutable_data()));
    return array;
  }

  const OutputField output_;
  const std::shared_ptr<const PixelsProgram> pixels_;  // Null if it takes none.
  std::mutex mutex_;
  std::vector<ScratchRef> idle_;  // Guarded by mutex_.
};

/// The name and the parameters, as JSON, of each op in
/// "decode_image,resize:224".
std::vector<std::pair<std::string, std::string>> ops_of_words(
    const std::string& text) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const OpSpec& spec : value_or_raise(parse_ops(text))) {
    all.emplace_back(spec.name, spec.params_json);
  }
  return all;
}

}  // namespace

void bind_program(py::module_& module) {
  py::class_<ProgramRunner>(module, "Program",
                            "Ops over bytes at hand. See leat.ops.Chain.")
      .def(py::init<const std::string&, const py::list&>(), py::arg("ops_json"),
           py::arg("functions"))
      .def("run", &ProgramRunner::run, py::arg("data"), py::arg("seed"),
           py::arg("epoch"), py::arg("sample"))
      .def("drawn", &ProgramRunner::drawn, py::arg("data"), py::arg("seed"),
           py::arg("epoch"), py::arg("sample"));
  module.def("ops_of_words", &ops_of_words, py::arg("text"));
  module.def("ops_help", &ops_help, "The table of ops, as text.");
}

}  // namespace leat
