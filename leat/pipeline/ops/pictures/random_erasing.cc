// One colour or noise over a random part, as torchvision's op has it.

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>
#include <vector>

#include "leat/base/errors.h"
#include "leat/base/hash.h"
#include "leat/pipeline/ops/param_reader.h"
#include "leat/pipeline/ops/pictures/kinds.h"
#include "leat/pipeline/ops/small_floats.h"

namespace leat {
namespace {

constexpr int kEraseTries = 10;
constexpr double kMostRatio = 1000;

/// Normal noise, mean 0 and deviation 1, as a function of a seed.
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : seed_(seed) {}

  /// By Box and Muller, whose method makes two at a time.
  float next() {
    if (has_other_) {
      has_other_ = false;
      return other_;
    }
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    const double angle = 2 * std::numbers::pi * uniform();
    other_ = static_cast<float>(radius * std::sin(angle));
    has_other_ = true;
    return static_cast<float>(radius * std::cos(angle));
  }

 private:
  double uniform() {
    const std::uint64_t bits = mix64(seed_ + count_++ * 0x9e3779b97f4a7c15ULL);
    return static_cast<double>(bits >> 11) * 0x1p-53;
  }

  const std::uint64_t seed_;
  std::uint64_t count_ = 0;
  float other_ = 0;
  bool has_other_ = false;
};

float to_single(double value) { return static_cast<float>(value); }

class ErasedPart final : public PictureEdit {
 public:
  ErasedPart(const Rect& part, std::vector<double> value,
             std::uint64_t noise_seed)
      : part_(part), value_(std::move(value)), noise_seed_(noise_seed) {}

  /// The noise goes over the picture as it lies, mirrored or not.
  void apply(const PictureValues& values) const override {
    const Mirror how{values.column_step < 0, values.row_step < 0};
    const PictureValues lying = values.mirrored(how);
    Rect part = part_;
    if (how.along_x) part.x = values.size.width - part.x - part.width;
    if (how.along_y) part.y = values.size.height - part.y - part.height;
    put(lying, part);
  }

  DrawnOp drawn() const override {
    return {.op = 0,
            .name = "erase",
            .values = {{"top", {static_cast<double>(part_.y)}},
                       {"left", {static_cast<double>(part_.x)}},
                       {"height", {static_cast<double>(part_.height)}},
                       {"width", {static_cast<double>(part_.width)}}}};
  }

 private:
  void put(const PictureValues& values, const Rect& part) const {
    switch (values.dtype) {
      case DType::kUint8:
        return put_bytes(values, part);
      case DType::kFloat16:
        return put_items<std::uint16_t>(values, part, [](double value) {
          return to_float16(to_single(value));
        });
      case DType::kBfloat16:
        return put_items<std::uint16_t>(values, part, [](double value) {
          return to_bfloat16(to_single(value));
        });
      case DType::kFloat64:
        return put_items<double>(values, part,
                                 [](double value) { return value; });
      default:
        return put_items<float>(values, part, to_single);
    }
  }

  double value_of(std::uint32_t channel) const {
    return value_[value_.size() == 1 ? 0 : channel];
  }

  template <class Item, class ToItem>
  void put_items(const PictureValues& values, const Rect& part,
                 const ToItem& to_item) const {
    const auto step =
        values.column_step / static_cast<std::ptrdiff_t>(sizeof(Item));
    Noise noise(noise_seed_);
    for (std::uint32_t c = 0; c < values.channels; ++c) {
      const Item one = value_.empty() ? Item{} : to_item(value_of(c));
      for (std::uint32_t y = 0; y < part.height; ++y) {
        auto* into = reinterpret_cast<Item*>(values.at(part.x, part.y + y, c));
        for (std::uint32_t x = 0; x < part.width; ++x, into += step) {
          *into = value_.empty() ? to_item(noise.next()) : one;
        }
      }
    }
  }

  void put_bytes(const PictureValues& values, const Rect& part) const {
    std::array<std::byte, 3> colour;
    for (std::uint32_t c = 0; c < values.channels; ++c) {
      colour[c] = static_cast<std::byte>(value_of(c));
    }
    for (std::uint32_t y = 0; y < part.height; ++y) {
      std::byte* pixel = values.at(part.x, part.y + y, 0);
      for (std::uint32_t x = 0; x < part.width; ++x) {
        for (std::uint32_t c = 0; c < values.channels; ++c) {
          pixel[std::ptrdiff_t{c} * values.channel_step] = colour[c];
        }
        pixel += values.column_step;
      }
    }
  }

  const Rect part_;
  const std::vector<double> value_;
  const std::uint64_t noise_seed_;
};

class RandomErasing final : public PictureOp {
 public:
  explicit RandomErasing(ParamReader& params)
      : p_(params.number("p", 0, 1)),
        scale_(params.range("scale", 1)),
        ratio_(params.range("ratio", kMostRatio)) {
    if (!params.was_given("value", "random")) {
      value_ = params.number_list("value", {1, 3});
    }
  }

  Result<void> check(DType dtype, std::uint32_t channels) const override {
    if (value_.size() > 1 && value_.size() != channels) {
      return invalid(
          "has {} numbers for {} channel(s): give one, or one for each",
          value_.size(), channels);
    }
    const auto is_byte = [](double number) {
      return number >= 0 && number <= 255 && number == std::floor(number);
    };
    const bool is_colour =
        !value_.empty() && std::ranges::all_of(value_, is_byte);
    if (is_float(dtype) || (dtype == DType::kUint8 && is_colour)) return {};
    return invalid(
        "works on {} there: give it whole numbers from 0 to 255 as value and "
        "put it before all casts, or put it behind normalize",
        to_string(dtype));
  }

  std::shared_ptr<const PictureEdit> draw(PixelSize size,
                                          Draws& draws) const override {
    const std::optional<Rect> part = draw_part(size, draws);
    if (!part) return nullptr;
    return std::make_shared<const ErasedPart>(*part, value_, draws.bits());
  }

 private:
  /// Nothing if the draws say so, or if ten parts that were drawn did not fit.
  std::optional<Rect> draw_part(PixelSize image, Draws& draws) const {
    if (draws.uniform() >= p_) return std::nullopt;
    const double area = static_cast<double>(image.width) * image.height;
    for (int i = 0; i < kEraseTries; ++i) {
      const double target = area * draws.uniform(scale_[0], scale_[1]);
      const double aspect =
          std::exp(draws.uniform(std::log(ratio_[0]), std::log(ratio_[1])));
      const double height = std::nearbyint(std::sqrt(target * aspect));
      const double width = std::nearbyint(std::sqrt(target / aspect));
      if (height >= image.height || width >= image.width) continue;
      const auto w = static_cast<std::uint32_t>(width);
      const auto h = static_cast<std::uint32_t>(height);
      const std::uint32_t y = draws.below(image.height - h + 1);
      const std::uint32_t x = draws.below(image.width - w + 1);
      return Rect{x, y, w, h};
    }
    return std::nullopt;
  }

  const double p_;
  const Bounds scale_;  ///< The part's area to the picture's.
  const Bounds ratio_;  ///< The part's height to its width.
  /// One number, or one for each channel; none: normal noise.
  std::vector<double> value_;
};

std::shared_ptr<const PictureOp> make_random_erasing(ParamReader& params) {
  return std::make_shared<const RandomErasing>(params);
}

constexpr std::array kErasingParams = {
    ParamInfo{"p", ParamKind::kNumber, "0.5", "the probability"},
    ParamInfo{"scale", ParamKind::kRange, "[0.02, 0.33]", "of the erased area"},
    ParamInfo{"ratio", ParamKind::kRange, "[0.3, 3.3]",
              "of its height to its width"},
    ParamInfo{"value", ParamKind::kNumberList, "0",
              "what is put there: one number, one for each channel, or random "
              "for normal noise behind normalize"},
    kIndependent};

}  // namespace

constinit const PictureOpKind kRandomErasing = {
    .info = {"random_erasing", "put one colour or noise over a random part",
             kErasingParams},
    .make = make_random_erasing};

}  // namespace leat
