#include "leat/pipeline/ops/function_program.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "leat/base/check.h"
#include "leat/pipeline/user_function.h"

namespace leat {
namespace {

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

std::uint64_t size_of(const Value& value) {
  return input_of(value).bytes.size();
}

class FunctionProgram final : public ValueProgram {
 public:
  FunctionProgram(const OutputField& before, const std::vector<Op>& ops)
      : program_(before.program), value_program_(before.value_program) {
    for (const Op& op : ops) {
      functions_.push_back(std::get<FunctionOp>(op.params));
    }
    LEAT_CHECK(!functions_.empty());
  }

  Joining joining() const override { return functions_.back().joining; }

  std::uint64_t most_bytes(std::uint64_t encoded_bytes) const override {
    // Nobody knows what a function makes: at least what it gets, and as much as
    // the most that it has made so far.
    std::uint64_t bytes = encoded_bytes;
    if (program_ != nullptr && program_->output()) {
      bytes = std::max<std::uint64_t>(bytes, program_->output()->size_bytes());
    }
    if (value_program_ != nullptr) {
      bytes = std::max(bytes, value_program_->most_bytes(encoded_bytes));
    }
    return std::max(bytes, most_made_.load(std::memory_order_relaxed));
  }

  Result<Value> run(std::span<const std::byte> encoded,
                    const SampleRandom& random, Scratch& scratch,
                    RunNotes& notes) const override {
    std::optional<Value> value;
    if (program_ != nullptr) {
      LEAT_TRY(value, run_program(encoded, random, scratch, notes));
    } else if (value_program_ != nullptr) {
      LEAT_TRY(value, value_program_->run(encoded, random, scratch, notes));
    }
    const TimePoint begin = SteadyClock().now();
    for (const FunctionOp& op : functions_) {
      const FunctionInput input =
          value ? input_of(*value)
                : FunctionInput{.kind = FunctionInput::Kind::kBytes,
                                .bytes = encoded,
                                .spec = {}};
      LEAT_TRY(Value made, op.function->call(input, random));
      value = std::move(made);
    }
    notes.transform += SteadyClock().now() - begin;
    learn(size_of(*value));
    return *std::move(value);
  }

  std::string remedy() const override {
    return "have the function give all the same shape, or say "
           "leat.ops.Python(..., ragged=True)";
  }

 private:
  Result<Value> run_program(std::span<const std::byte> encoded,
                            const SampleRandom& random, Scratch& scratch,
                            RunNotes& notes) const {
    LEAT_TRY(TensorSpec spec, program_->output_for(encoded));
    Buffer bytes(spec.size_bytes());
    LEAT_TRY_VOID(program_->run(encoded, random, scratch, bytes.span(), notes));
    return Value(
        ArrayValue{.spec = std::move(spec), .bytes = std::move(bytes)});
  }

  void learn(std::uint64_t bytes) const {
    std::uint64_t most = most_made_.load(std::memory_order_relaxed);
    while (bytes > most && !most_made_.compare_exchange_weak(
                               most, bytes, std::memory_order_relaxed)) {
    }
  }

  const std::shared_ptr<const Program> program_;
  const std::shared_ptr<const ValueProgram> value_program_;
  std::vector<FunctionOp> functions_;
  mutable std::atomic<std::uint64_t> most_made_ = 0;
};

}  // namespace

std::shared_ptr<const ValueProgram> compile_functions(
    const OutputField& before, const std::vector<Op>& ops) {
  return std::make_shared<FunctionProgram>(before, ops);
}

}  // namespace leat
