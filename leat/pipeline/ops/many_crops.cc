#include "leat/pipeline/ops/many_crops.h"

#include "leat/base/buffer.h"
#include "leat/base/errors.h"

namespace leat {
namespace {

class ManyCrops final : public SizedProgram {
 public:
  ManyCrops(std::shared_ptr<const SizedProgram> before, BeforeCrops what,
            std::vector<std::shared_ptr<const SizedProgram>> views)
      : before_(std::move(before)), what_(what), views_(std::move(views)) {}

  std::optional<TensorSpec> output() const override {
    const std::optional<TensorSpec> one = views_[0]->output();
    if (!one) return std::nullopt;
    return stacked(*one);
  }

  Result<TensorSpec> output_for(
      std::span<const std::byte> encoded) const override {
    LEAT_TRY(const TensorSpec spec, before_->output_for(encoded));
    return output_behind(spec);
  }

  Result<TensorSpec> output_of_pixels(PixelSize size) const override {
    LEAT_TRY(const TensorSpec spec, before_->output_of_pixels(size));
    return output_behind(spec);
  }

  Result<void> run(const SampleInput& input, const SampleRandom& random,
                   Scratch& scratch, std::span<std::byte> out,
                   RunNotes& notes) const override {
    LEAT_TRY(const TensorSpec spec, before_->output_for(input.encoded));
    Buffer picture(spec.size_bytes());
    LEAT_TRY_VOID(before_->run(input, random, scratch, picture.span(), notes));
    return run_views(picture.span(), spec, random, scratch, out, notes);
  }

  Result<void> run_on_pixels(const SampleInput& pixels, PixelSize size,
                             const SampleRandom& random, Scratch& scratch,
                             std::span<std::byte> out,
                             RunNotes& notes) const override {
    LEAT_TRY(const TensorSpec spec, before_->output_of_pixels(size));
    if (what_ == BeforeCrops::kDecodesAlone) {
      return run_views(pixels.encoded, spec, random, scratch, out, notes);
    }
    Buffer picture(spec.size_bytes());
    LEAT_TRY_VOID(before_->run_on_pixels(pixels, size, random, scratch,
                                         picture.span(), notes));
    return run_views(picture.span(), spec, random, scratch, out, notes);
  }

  std::string remedy() const override { return before_->remedy(); }

  Result<std::string> drawn(std::span<const std::byte> encoded,
                            const SampleRandom& random) const override {
    return before_->drawn(encoded, random);
  }

  std::string drawn_for_pixels(PixelSize size,
                               const SampleRandom& random) const override {
    return before_->drawn_for_pixels(size, random);
  }

 private:
  static PixelSize size_of(const TensorSpec& picture) {
    return {static_cast<std::uint32_t>(picture.shape[1]),
            static_cast<std::uint32_t>(picture.shape[0])};
  }

  TensorSpec stacked(TensorSpec one) const {
    one.shape.insert(one.shape.begin(),
                     static_cast<std::int64_t>(views_.size()));
    return one;
  }

  Result<TensorSpec> output_behind(const TensorSpec& picture) const {
    LEAT_TRY(TensorSpec one, views_[0]->output_of_pixels(size_of(picture)));
    return stacked(std::move(one));
  }

  Result<void> run_views(std::span<const std::byte> picture,
                         const TensorSpec& spec, const SampleRandom& random,
                         Scratch& scratch, std::span<std::byte> out,
                         RunNotes& notes) const {
    const std::size_t bytes = out.size() / views_.size();
    for (std::size_t i = 0; i < views_.size(); ++i) {
      LEAT_TRY_VOID(views_[i]->run_on_pixels(
          SampleInput(picture), size_of(spec), random, scratch,
          out.subspan(i * bytes, bytes), notes));
    }
    return {};
  }

  const std::shared_ptr<const SizedProgram> before_;
  const BeforeCrops what_;
  const std::vector<std::shared_ptr<const SizedProgram>> views_;
};

}  // namespace

std::shared_ptr<const SizedProgram> make_many_crops(
    std::shared_ptr<const SizedProgram> before, BeforeCrops what,
    std::vector<std::shared_ptr<const SizedProgram>> views) {
  return std::make_shared<const ManyCrops>(std::move(before), what,
                                           std::move(views));
}

Result<std::vector<std::vector<Op>>> ops_of_views(const std::vector<Op>& ops,
                                                  std::size_t at,
                                                  const DecodeImageOp& decode) {
  for (std::size_t i = at + 1; i < ops.size(); ++i) {
    if (std::holds_alternative<NormalizeOp>(ops[i].params) ||
        std::holds_alternative<CastOp>(ops[i].params)) {
      continue;
    }
    return invalid(
        "{} (op {}) stands behind {}, and only normalize and cast can: put it "
        "before",
        ops[i].name, ops[i].index, ops[at].name);
  }
  const auto& crops = std::get<ManyCropsOp>(ops[at].params);
  std::vector<std::vector<Op>> views(kCropPlaces *
                                     (crops.is_mirrored_too ? 2 : 1));
  for (std::size_t i = 0; i < views.size(); ++i) {
    Op first;
    first.params = decode;
    views[i].push_back(std::move(first));
    views[i].insert(views[i].end(),
                    ops.begin() + static_cast<std::ptrdiff_t>(at), ops.end());
    std::get<ManyCropsOp>(views[i][1].params).view =
        static_cast<std::uint32_t>(i);
  }
  return views;
}

}  // namespace leat
