// All chains are one list of steps, in the order of the user's ops: a function
// on the values of some of them, or ops on the pixels of one.

#include "leat/pipeline/ops/joint_program.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <variant>

#include "leat/base/check.h"
#include "leat/base/errors.h"
#include "leat/pipeline/ops/function_program.h"
#include "leat/pipeline/ops/image_program.h"
#include "leat/pipeline/program/sample_view.h"
#include "leat/pipeline/program/user_function.h"

namespace leat {
namespace {

using PixelsRef = std::shared_ptr<const PixelsProgram>;

struct JointStep {
  std::size_t op_index = 0;         ///< The index of its first op.
  std::vector<std::size_t> chains;  ///< In the order of a function's fields.
  std::variant<FunctionOp, PixelsRef> what;
};

class JointProgram {
 public:
  JointProgram(std::vector<JointChain> chains, std::vector<JointStep> steps)
      : chains_(std::move(chains)),
        steps_(std::move(steps)),
        most_made_(chains_.size()) {}

  /// Learnt as values are made, as FunctionProgram does.
  std::uint64_t most_bytes(std::size_t chain,
                           std::uint64_t encoded_bytes) const {
    const OutputField& before = chains_[chain].before;
    std::uint64_t bytes = encoded_bytes;
    if (before.program != nullptr && before.program->output()) {
      bytes = std::max<std::uint64_t>(bytes,
                                      before.program->output()->size_bytes());
    }
    if (before.value_program != nullptr) {
      bytes = std::max(bytes, before.value_program->most_bytes(encoded_bytes));
    }
    return std::max(bytes, most_made_[chain].load(std::memory_order_relaxed));
  }

  Joining joining(std::size_t chain) const {
    if (chains_[chain].shapes) return chains_[chain].shapes->joining;
    const OutputField& before = chains_[chain].before;
    // Bytes as they are stored, as long as only filters have seen them.
    bool is_raw = before.program == nullptr &&
                  before.value_program == nullptr &&
                  chains_[chain].kind == FieldKind::kBytes;
    Joining joining = is_raw ? Joining::kRagged : Joining::kStack;
    if (before.value_program != nullptr) {
      joining = before.value_program->joining();
    }
    for (const JointStep& step : steps_) {
      if (std::ranges::find(step.chains, chain) == step.chains.end()) continue;
      const auto* function = std::get_if<FunctionOp>(&step.what);
      if (function != nullptr && function->filters) continue;
      if (std::exchange(is_raw, false)) joining = Joining::kStack;
      if (function != nullptr && function->joining == Joining::kRagged) {
        joining = Joining::kRagged;
      }
    }
    return joining;
  }

  PadRule pad_rule(std::size_t chain) const {
    const auto& shapes = chains_[chain].shapes;
    return shapes ? shapes->pad_rule : PadRule{};
  }

  Result<std::vector<Value>> run(SampleView& sample, const SampleRandom& random,
                                 Scratch& scratch, RunNotes& notes) const {
    std::vector<std::optional<Value>> values;
    for (const JointChain& chain : chains_) {
      const std::size_t column = chain.before.source;
      const std::span<const std::byte> bytes = sample.bytes_of(column);
      LEAT_TRY(
          std::optional<Value> value,
          value_before(chain.before, {bytes, &sample}, random, scratch, notes));
      values.push_back(std::move(value));
    }
    const TimePoint begin = SteadyClock().now();
    for (const JointStep& step : steps_) {
      LEAT_TRY_VOID(run_step(step, values, sample, random, scratch));
    }
    notes.transform += SteadyClock().now() - begin;
    std::vector<Value> made;
    for (std::size_t i = 0; i < values.size(); ++i) {
      learn(i, input_of(*values[i]).bytes.size());
      made.push_back(*std::move(values[i]));
    }
    return made;
  }

 private:
  FunctionInput input_of_chain(std::size_t chain,
                               const std::vector<std::optional<Value>>& values,
                               const SampleView& sample) const {
    if (values[chain]) return input_of(*values[chain]);
    return input_of(sample.bytes_of(chains_[chain].before.source),
                    chains_[chain].kind);
  }

  Result<void> run_step(const JointStep& step,
                        std::vector<std::optional<Value>>& values,
                        SampleView& sample, const SampleRandom& random,
                        Scratch& scratch) const {
    std::vector<FunctionInput> inputs;
    for (const std::size_t chain : step.chains) {
      inputs.push_back(input_of_chain(chain, values, sample));
    }
    if (const auto* pixels = std::get_if<PixelsRef>(&step.what)) {
      LEAT_TRY(values[step.chains[0]],
               run_pixels(**pixels, inputs[0], sample, random, scratch));
      return {};
    }
    const auto& op = std::get<FunctionOp>(step.what);
    if (op.fields.empty()) {
      LEAT_TRY(values[step.chains[0]], op.function->call(inputs[0], random));
      return {};
    }
    LEAT_TRY(std::vector<Value> made, op.function->call_joint(inputs, random));
    LEAT_CHECK(made.size() == step.chains.size());
    for (std::size_t i = 0; i < made.size(); ++i) {
      values[step.chains[i]] = std::move(made[i]);
    }
    return {};
  }

  static Result<Value> run_pixels(const PixelsProgram& pixels,
                                  const FunctionInput& input,
                                  SampleView& sample,
                                  const SampleRandom& random,
                                  Scratch& scratch) {
    RunNotes counted_as_a_whole;
    LEAT_TRY(TensorSpec spec, pixels.output_for(input.spec));
    Buffer bytes(spec.size_bytes());
    LEAT_TRY_VOID(pixels.run(input.spec, {input.bytes, &sample}, random,
                             scratch, bytes.span(), counted_as_a_whole));
    return Value(
        ArrayValue{.spec = std::move(spec), .bytes = std::move(bytes)});
  }

  void learn(std::size_t chain, std::uint64_t bytes) const {
    std::uint64_t most = most_made_[chain].load(std::memory_order_relaxed);
    while (bytes > most && !most_made_[chain].compare_exchange_weak(
                               most, bytes, std::memory_order_relaxed)) {
    }
  }

  const std::vector<JointChain> chains_;
  const std::vector<JointStep> steps_;
  mutable std::vector<std::atomic<std::uint64_t>> most_made_;
};

/// One field of their joint output.
class PartProgram final : public ValueProgram {
 public:
  PartProgram(std::shared_ptr<const JointProgram> whole, std::size_t part)
      : whole_(std::move(whole)), part_(part) {}

  Joining joining() const override { return whole_->joining(part_); }
  PadRule pad_rule() const override { return whole_->pad_rule(part_); }
  std::uint64_t most_bytes(std::uint64_t encoded_bytes) const override {
    return whole_->most_bytes(part_, encoded_bytes);
  }
  std::string remedy() const override {
    return "have the function give all the same shape, or say "
           "leat.ops.Python(..., ragged=True), or of pictures "
           "leat.ops.DecodeImage(ragged=True)";
  }

  Result<Value> run(const SampleInput& input, const SampleRandom& random,
                    Scratch& scratch, RunNotes& notes) const override {
    if (input.sample == nullptr) {
      return invalid(
          "a function of several fields needs the others: use a loader");
    }
    std::vector<Value>* made = input.sample->made_by(whole_.get());
    if (made == nullptr) {
      LEAT_TRY(std::vector<Value> values,
               whole_->run(*input.sample, random, scratch, notes));
      made = &input.sample->keep(whole_.get(), std::move(values));
    }
    return std::move((*made)[part_]);
  }

 private:
  const std::shared_ptr<const JointProgram> whole_;
  const std::size_t part_;
};

/// Adds the steps of one chain; a function of several fields is there once.
Result<void> add_steps(const JointChain& chain, std::size_t place,
                       std::vector<JointStep>& steps) {
  for (std::size_t i = 0; i < chain.ops.size();) {
    const Op& op = chain.ops[i];
    const auto* function = std::get_if<FunctionOp>(&op.params);
    if (function == nullptr) {
      std::vector<Op> run;
      while (i < chain.ops.size() &&
             !std::holds_alternative<FunctionOp>(chain.ops[i].params)) {
        run.push_back(chain.ops[i++]);
      }
      const std::size_t first = run[0].index;
      LEAT_TRY(PixelsRef pixels,
               compile_pixels_program(chain.decode, std::move(run), chain.field,
                                      chain.decode.layout));
      steps.push_back({first, {place}, std::move(pixels)});
      continue;
    }
    ++i;
    if (function->fields.empty()) {
      steps.push_back({op.index, {place}, *function});
      continue;
    }
    auto joint = std::ranges::find(steps, op.index, &JointStep::op_index);
    if (joint == steps.end()) {
      steps.push_back({op.index,
                       std::vector<std::size_t>(function->fields.size()),
                       *function});
      joint = steps.end() - 1;
    }
    const auto part = std::ranges::find(function->fields, op.field);
    LEAT_CHECK(part != function->fields.end());
    joint->chains[static_cast<std::size_t>(part - function->fields.begin())] =
        place;
  }
  return {};
}

}  // namespace

Result<std::vector<std::shared_ptr<const ValueProgram>>> compile_joint(
    std::vector<JointChain> chains) {
  std::vector<JointStep> steps;
  for (std::size_t i = 0; i < chains.size(); ++i) {
    LEAT_TRY_VOID(add_steps(chains[i], i, steps));
  }
  std::ranges::stable_sort(steps, {}, &JointStep::op_index);
  const std::size_t count = chains.size();
  const auto whole =
      std::make_shared<const JointProgram>(std::move(chains), std::move(steps));
  std::vector<std::shared_ptr<const ValueProgram>> parts;
  for (std::size_t i = 0; i < count; ++i) {
    parts.push_back(std::make_shared<PartProgram>(whole, i));
  }
  return parts;
}

}  // namespace leat
