#include "leat/pipeline/ops/function_program.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "leat/base/check.h"
#include "leat/base/errors.h"
#include "leat/pipeline/ops/image_program.h"
#include "leat/pipeline/ops/seen_sizes.h"
#include "leat/pipeline/program/user_function.h"

namespace leat {
namespace {

std::uint64_t size_of(const Value& value) {
  return input_of(value).bytes.size();
}

/// A function, or the ops behind it.
using FunctionStep =
    std::variant<FunctionOp, std::shared_ptr<const PixelsProgram>>;

class FunctionProgram final : public ValueProgram {
 public:
  FunctionProgram(std::shared_ptr<const Program> program,
                  std::shared_ptr<const ValueProgram> value_program,
                  FieldKind kind, std::vector<FunctionStep> steps,
                  std::shared_ptr<SeenSizes> made,
                  const std::optional<OwnShapes>& shapes)
      : program_(std::move(program)),
        value_program_(std::move(value_program)),
        kind_(kind),
        steps_(std::move(steps)),
        made_(std::move(made)),
        shapes_(shapes) {}

  PadRule pad_rule() const override {
    return shapes_ ? shapes_->pad_rule : PadRule{};
  }
  Joining joining() const override {
    if (shapes_) return shapes_->joining;
    // A filter gives back the value that it got.
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
      const auto* function = std::get_if<FunctionOp>(&*step);
      if (function == nullptr) return Joining::kStack;
      if (!function->filters) return function->joining;
    }
    if (value_program_ != nullptr) return value_program_->joining();
    const bool is_raw = program_ == nullptr && kind_ == FieldKind::kBytes;
    return is_raw ? Joining::kRagged : Joining::kStack;
  }

  std::uint64_t most_bytes(std::uint64_t encoded_bytes) const override {
    // The size of a function's output is unknown: take at least that of its
    // input, and as much as the most that it has made so far; for pictures of
    // any size, the usual.
    std::uint64_t bytes = encoded_bytes;
    if (program_ != nullptr && program_->output()) {
      bytes = std::max<std::uint64_t>(bytes, program_->output()->size_bytes());
    }
    if (value_program_ != nullptr) {
      bytes = std::max(bytes, value_program_->most_bytes(encoded_bytes));
    }
    return std::max(bytes,
                    guesses() ? made_->usual_bytes() : made_->most_bytes());
  }

  bool guesses() const override { return shapes_ && program_ != nullptr; }
  /// The input of the first function.
  std::optional<TensorSpec> spec_for(
      std::span<const std::byte> encoded) const override {
    Result<TensorSpec> spec = program_->output_for(encoded);
    return spec ? std::optional(*std::move(spec)) : std::nullopt;
  }

  Result<Value> run(const SampleInput& sample, const SampleRandom& random,
                    Scratch& scratch, RunNotes& notes) const override {
    LEAT_TRY(
        std::optional<Value> value,
        value_before({.program = program_, .value_program = value_program_},
                     sample, random, scratch, notes));
    const TimePoint begin = SteadyClock().now();
    for (const FunctionStep& step : steps_) {
      const FunctionInput input =
          value ? input_of(*value) : input_of(sample.encoded, kind_);
      LEAT_TRY(Value made,
               run_step(step, input, sample.sample, random, scratch));
      value = std::move(made);
    }
    notes.transform += SteadyClock().now() - begin;
    made_->add(size_of(*value));
    return *std::move(value);
  }

  std::string remedy() const override {
    return "have the function give all the same shape, or say "
           "leat.ops.Python(..., ragged=True), or of pictures "
           "leat.ops.DecodeImage(ragged=True)";
  }

 private:
  static Result<Value> run_step(const FunctionStep& step,
                                const FunctionInput& input, SampleView* sample,
                                const SampleRandom& random, Scratch& scratch) {
    if (const auto* op = std::get_if<FunctionOp>(&step)) {
      return op->function->call(input, random);
    }
    RunNotes counted_as_a_whole;
    const auto& pixels = *std::get<std::shared_ptr<const PixelsProgram>>(step);
    LEAT_TRY(TensorSpec spec, pixels.output_for(input.spec));
    Buffer bytes(spec.size_bytes());
    LEAT_TRY_VOID(pixels.run(input.spec, {input.bytes, sample}, random, scratch,
                             bytes.span(), counted_as_a_whole));
    return Value(
        ArrayValue{.spec = std::move(spec), .bytes = std::move(bytes)});
  }

  const std::shared_ptr<const Program> program_;
  const std::shared_ptr<const ValueProgram> value_program_;
  const FieldKind kind_;
  const std::vector<FunctionStep> steps_;
  const std::shared_ptr<SeenSizes> made_;
  const std::optional<OwnShapes> shapes_;
};

Result<Value> run_program(const Program& program, const SampleInput& input,
                          const SampleRandom& random, Scratch& scratch,
                          RunNotes& notes) {
  LEAT_TRY(TensorSpec spec, program.output_for(input.encoded));
  Buffer bytes(spec.size_bytes());
  LEAT_TRY_VOID(program.run(input, random, scratch, bytes.span(), notes));
  return Value(ArrayValue{.spec = std::move(spec), .bytes = std::move(bytes)});
}

}  // namespace

FunctionInput input_of(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    return {.kind = FunctionInput::Kind::kText,
            .bytes = std::as_bytes(std::span(*text)),
            .spec = {}};
  }
  const auto& array = std::get<ArrayValue>(value);
  return {.kind = FunctionInput::Kind::kArray,
          .bytes = array.bytes.span(),
          .spec = array.spec};
}

FunctionInput input_of(std::span<const std::byte> bytes, FieldKind kind) {
  using Kind = FunctionInput::Kind;
  switch (kind) {
    case FieldKind::kBytes:
      break;
    case FieldKind::kString:
      return {.kind = Kind::kText, .bytes = bytes, .spec = {}};
    case FieldKind::kInt64:
      return {
          .kind = Kind::kArray, .bytes = bytes, .spec = {DType::kInt64, {}}};
    case FieldKind::kFloat64:
      return {
          .kind = Kind::kArray, .bytes = bytes, .spec = {DType::kFloat64, {}}};
  }
  return {.kind = Kind::kBytes, .bytes = bytes, .spec = {}};
}

Result<std::optional<Value>> value_before(const OutputField& before,
                                          const SampleInput& input,
                                          const SampleRandom& random,
                                          Scratch& scratch, RunNotes& notes) {
  std::optional<Value> value;
  if (before.program != nullptr) {
    LEAT_TRY(value,
             run_program(*before.program, input, random, scratch, notes));
  } else if (before.value_program != nullptr) {
    LEAT_TRY(value, before.value_program->run(input, random, scratch, notes));
  }
  return value;
}

Result<FunctionPrograms> compile_functions(
    const OutputField& before, FieldKind kind, const DecodeImageOp& decode,
    const std::vector<Op>& ops, const std::string& field,
    const std::shared_ptr<const Program>& rest_before,
    const std::optional<OwnShapes>& shapes) {
  std::vector<FunctionStep> steps;
  for (std::size_t i = 0; i < ops.size();) {
    if (const auto* function = std::get_if<FunctionOp>(&ops[i].params)) {
      steps.emplace_back(*function);
      ++i;
      continue;
    }
    std::vector<Op> run;
    while (i < ops.size() &&
           !std::holds_alternative<FunctionOp>(ops[i].params)) {
      run.push_back(ops[i++]);
    }
    LEAT_TRY(auto pixels, compile_pixels_program(decode, std::move(run), field,
                                                 decode.layout));
    steps.emplace_back(std::move(pixels));
  }
  LEAT_CHECK(!steps.empty());
  const auto made_sizes = std::make_shared<SeenSizes>();
  FunctionPrograms made;
  made.whole = std::make_shared<FunctionProgram>(
      before.program, before.value_program, kind, steps, made_sizes, shapes);
  if (rest_before != nullptr) {
    made.rest = std::make_shared<FunctionProgram>(rest_before, nullptr, kind,
                                                  steps, made_sizes, shapes);
  }
  return made;
}

Result<std::vector<Value>> UserFunction::call_joint(
    std::span<const FunctionInput>, const SampleRandom&) const {
  return invalid("this function takes the value of one field");
}

}  // namespace leat
