#include "leat/pipeline/ops/shape_program.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "leat/base/buffer.h"
#include "leat/base/errors.h"
#include "leat/pipeline/ops/seen_sizes.h"
#include "leat/pipeline/program/cut.h"

namespace leat {
namespace {

class ShapeProgram final : public ValueProgram {
 public:
  ShapeProgram(std::shared_ptr<const Program> program, const OwnShapes& shapes,
               std::shared_ptr<SeenSizes> seen)
      : program_(std::move(program)), shapes_(shapes), seen_(std::move(seen)) {}

  Joining joining() const override { return shapes_.joining; }
  PadRule pad_rule() const override { return shapes_.pad_rule; }

  std::uint64_t most_bytes(std::uint64_t encoded_bytes) const override {
    if (const auto fixed = program_->output()) return fixed->size_bytes();
    return std::max(encoded_bytes, seen_->usual_bytes());
  }

  bool guesses() const override { return true; }
  std::optional<TensorSpec> spec_for(
      std::span<const std::byte> encoded) const override {
    Result<TensorSpec> spec = program_->output_for(encoded);
    return spec ? std::optional(*std::move(spec)) : std::nullopt;
  }

  Result<Value> run(const SampleInput& input, const SampleRandom& random,
                    Scratch& scratch, RunNotes& notes) const override {
    LEAT_TRY(TensorSpec spec, program_->output_for(input.encoded));
    Buffer bytes(spec.size_bytes());
    LEAT_TRY_VOID(program_->run(input, random, scratch, bytes.span(), notes));
    seen_->add(bytes.size());
    return Value(
        ArrayValue{.spec = std::move(spec), .bytes = std::move(bytes)});
  }

  std::string remedy() const override { return program_->remedy(); }

 private:
  const std::shared_ptr<const Program> program_;
  const OwnShapes shapes_;
  const std::shared_ptr<SeenSizes> seen_;
};

}  // namespace

Result<std::optional<OwnShapes>> take_own_shapes(std::vector<Op>& ops,
                                                 PixelLayout layout) {
  std::optional<OwnShapes> shapes;
  const std::size_t height_at = layout == PixelLayout::kChw ? 1 : 0;
  const auto* decode = std::get_if<DecodeImageOp>(&ops.front().params);
  if (decode != nullptr && decode->is_ragged) {
    shapes.emplace();
    shapes->pad_rule = {.height_at = height_at, .is_of_pictures = true};
  }
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const auto* pad = std::get_if<PadToOp>(&ops[i].params);
    if (pad == nullptr) continue;
    if (i + 1 != ops.size()) {
      return invalid(
          "{} (op {}) fills up what is delivered: put it behind all other ops "
          "of its field",
          ops[i].name, ops[i].index);
    }
    shapes = OwnShapes{.joining = Joining::kPadded,
                       .pad_rule = {.size = {pad->size.height, pad->size.width},
                                    .multiple = pad->multiple,
                                    .fill = pad->fill,
                                    .height_at = height_at,
                                    .is_of_pictures = true}};
  }
  const auto crops = std::ranges::find_if(ops, [](const Op& op) {
    return std::holds_alternative<ManyCropsOp>(op.params);
  });
  if (shapes && crops != ops.end()) {
    return invalid(
        "{} (op {}) makes pictures of one size: neither pad_to nor ragged=true "
        "has a place beside it",
        crops->name, crops->index);
  }
  if (shapes && shapes->joining == Joining::kPadded) ops.pop_back();
  return shapes;
}

void give_own_shapes(OutputField& output, const OwnShapes& shapes) {
  const auto seen = std::make_shared<SeenSizes>();
  const auto with_shapes = [&](std::shared_ptr<const Program> program) {
    return std::make_shared<const ShapeProgram>(std::move(program), shapes,
                                                seen);
  };
  output.value_program = with_shapes(std::move(output.program));
  output.program = nullptr;
  if (output.cut_chain == nullptr) return;
  CutChain cut = *output.cut_chain;
  cut.value_rest = with_shapes(std::move(cut.rest));
  cut.rest = nullptr;
  output.cut_chain = std::make_shared<const CutChain>(std::move(cut));
}

}  // namespace leat
