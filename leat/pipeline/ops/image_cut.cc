#include "leat/pipeline/ops/image_cut.h"

#include <optional>
#include <utility>
#include <variant>

#include "leat/base/check.h"
#include "leat/codec/image_formats.h"
#include "leat/codec/jpeg/jpeg_reader.h"
#include "leat/pipeline/ops/geometry.h"
#include "leat/pipeline/ops/image_program.h"
#include "leat/pipeline/ops/image_run.h"
#include "leat/pipeline/program/decoded_record.h"

namespace leat {
namespace {

/// True if it moves pixels, and by its parameters alone. An op that has to see
/// several fields together is run in every epoch.
bool is_before_cut(const Op& op) {
  if (op.meets_siblings) return false;
  return std::holds_alternative<ResizeOp>(op.params) ||
         std::holds_alternative<CenterCropOp>(op.params) ||
         std::holds_alternative<PadOp>(op.params) ||
         std::holds_alternative<LetterboxOp>(op.params);
}

/// Names ops by their meaning, not by their text: omitted parameters are there
/// with their defaults. Each begins with its place in OpParams.
class Namer {
 public:
  Namer() {
    hasher_.update(kDecodedVersion);
    hasher_.update(jpeg_library_version());
  }

  void add(const Op& op) {
    hasher_.update(op.params.index());
    std::visit([this](const auto& params) { add(params); }, op.params);
  }

  Hash128 name() const { return hasher_.digest(); }

 private:
  template <class Params>
  void add(const Params&) {
    LEAT_CHECK(!"an op that is never before a cut");
  }
  // Not its layout: a record has its own.
  void add(const DecodeImageOp& op) {
    add_all({number(op.mode), number(op.exif_orientation),
             number(op.dct_scaling), op.max_pixels, op.cuts_depth});
    if (op.is_mask()) add_all({op.ignore_index});  // The fill of ops behind.
  }
  void add(const ResizeOp& op) {
    add_all({op.size.width, op.size.height, op.shorter_side,
             number(op.interpolation)});
  }
  void add(const CenterCropOp& op) { add_all({op.size.width, op.size.height}); }
  void add(const PadOp& op) {
    add_all({op.padding.left, op.padding.top, op.padding.right,
             op.padding.bottom, op.least.width, op.least.height, op.fill[0],
             op.fill[1], op.fill[2]});
  }

  void add(const LetterboxOp& op) {
    add_all({op.size.width, op.size.height, op.fill[0], op.fill[1], op.fill[2],
             number(op.interpolation)});
  }

  template <class Enum>
  static std::uint64_t number(Enum value) {
    return static_cast<std::uint64_t>(value);
  }
  void add_all(std::initializer_list<std::uint64_t> numbers) {
    for (const std::uint64_t one : numbers) hasher_.update(one);
  }

  Hasher128 hasher_;
};

class ImageCut final : public Cut {
 public:
  ImageCut(const std::vector<Op>& ops, std::size_t first_behind,
           std::shared_ptr<const Program> before)
      : decode_(std::get<DecodeImageOp>(ops[0].params)),
        before_(std::move(before)) {
    Namer namer;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (i < first_behind) namer.add(ops[i]);
      largest_crops_.push_back(with_largest_crop(ops[i]));
    }
    name_ = namer.name();
    for (std::size_t i = 0; i < first_behind; ++i)
      before_ops_.push_back(ops[i]);
  }

  Hash128 name() const override { return name_; }

  std::optional<std::uint64_t> record_bytes() const override {
    const std::optional<TensorSpec> spec = before_->output();
    if (!spec) return std::nullopt;
    return record_bytes_of(*spec);
  }

  Result<std::optional<std::uint64_t>> record_bytes_for(
      std::span<const std::byte> encoded) const override {
    LEAT_TRY(const ImageHeader header,
             read_image_header(encoded, decode_.max_pixels));
    LEAT_TRY(const TensorSpec spec, before_->output_for(encoded));
    if (may_shrink(header) || spec.shape[0] > kMostPixelsSide ||
        spec.shape[1] > kMostPixelsSide) {
      return std::optional<std::uint64_t>();
    }
    return std::optional(record_bytes_of(spec));
  }

  Result<bool> make(std::span<const std::byte> encoded, Scratch& scratch,
                    std::span<std::byte> record,
                    RunNotes& notes) const override {
    LEAT_TRY(const TensorSpec spec, before_->output_for(encoded));
    RunNotes mine;
    LEAT_TRY_VOID(before_->run(encoded, SampleRandom{}, scratch,
                               begin_record(spec, record), mine));
    // The whole chain may never read the damaged part.
    if (mine.decode_warnings != 0) return false;
    notes.transform += mine.transform;
    return true;
  }

  bool can_read(std::span<const std::byte> record) const override {
    const std::optional<RecordArray> array = read_record(record);
    const auto is_side = [](std::int64_t n) { return n <= kMostPixelsSide; };
    return array && array->spec.dtype == pixel_dtype(decode_.mode) &&
           array->spec.shape.size() == 3 &&
           array->spec.shape[2] == channels_of(decode_.mode) &&
           is_side(array->spec.shape[0]) && is_side(array->spec.shape[1]);
  }

 private:
  static Op with_largest_crop(Op op) {
    if (const auto* crop = std::get_if<RandomResizedCropOp>(&op.params)) {
      op.params = ResizeOp{.size = crop->size,
                           .shorter_side = 0,
                           .interpolation = crop->interpolation};
    }
    return op;
  }

  /// Whether some draw of the whole chain could have the picture decoded at a
  /// fraction of its size, and the ops before the cut do not.
  bool may_shrink(const ImageHeader& header) const {
    const PixelSize size = upright_size(header, decode_);
    const SampleRandom any;
    if (!plan_geometry(before_ops_, size, any, 0).steps.empty()) {
      return false;  // The first step is theirs, and always the same.
    }
    return shrink_log2_of(header, plan_geometry(largest_crops_, size, any, 0),
                          decode_) > 0;
  }

  const DecodeImageOp decode_;
  const std::shared_ptr<const Program> before_;
  std::vector<Op> before_ops_;
  std::vector<Op> largest_crops_;  ///< All ops, with no crop drawn.
  Hash128 name_;
};

/// The ops behind the cut, on a record.
class RestProgram final : public Program {
 public:
  RestProgram(std::shared_ptr<const Program> whole,
              std::shared_ptr<const PixelsProgram> pixels)
      : whole_(std::move(whole)), pixels_(std::move(pixels)) {}

  std::optional<TensorSpec> output() const override { return whole_->output(); }

  Result<TensorSpec> output_for(
      std::span<const std::byte> record) const override {
    LEAT_TRY(const RecordArray array, array_in(record));
    return pixels_->output_for(array.spec);
  }

  Result<void> run(const SampleInput& input, const SampleRandom& random,
                   Scratch& scratch, std::span<std::byte> out,
                   RunNotes& notes) const override {
    LEAT_TRY(const RecordArray array, array_in(input.encoded));
    return pixels_->run(array.spec, {array.bytes, input.sample}, random,
                        scratch, out, notes);
  }

  std::string remedy() const override { return whole_->remedy(); }

 private:
  static Result<RecordArray> array_in(std::span<const std::byte> record) {
    std::optional<RecordArray> array = read_record(record);
    if (!array) return Error(ErrorCode::kInternal, "this is no decoded record");
    return *std::move(array);
  }

  const std::shared_ptr<const Program> whole_;
  const std::shared_ptr<const PixelsProgram> pixels_;
};

}  // namespace

Result<CutChain> cut_image_program(const std::vector<Op>& ops,
                                   const std::string& field,
                                   std::shared_ptr<const Program> whole,
                                   CutPlace place) {
  std::size_t first_behind = 1;
  while (place == CutPlace::kLast && first_behind < ops.size() &&
         is_before_cut(ops[first_behind])) {
    ++first_behind;
  }
  const auto behind = ops.begin() + static_cast<std::ptrdiff_t>(first_behind);
  std::vector<Op> before(ops.begin(), behind);
  auto& decode = std::get<DecodeImageOp>(before[0].params);
  const DecodeImageOp as_asked = decode;
  decode.layout = PixelLayout::kHwc;
  decode.label_dtype = DType::kUint8;
  LEAT_TRY(auto before_program,
           compile_image_program(std::move(before), field));
  LEAT_TRY(auto pixels, compile_pixels_program(as_asked, {behind, ops.end()},
                                               field, PixelLayout::kHwc));
  return CutChain{.cut = std::make_shared<ImageCut>(ops, first_behind,
                                                    std::move(before_program)),
                  .rest = std::make_shared<RestProgram>(std::move(whole),
                                                        std::move(pixels))};
}

}  // namespace leat
