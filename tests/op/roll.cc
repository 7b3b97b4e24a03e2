// An op that no user wants, added as leat/pipeline/ops/README.md says: it moves
// pixels to the right by a number of columns that it draws, and puts those that
// leave the picture back in on the left.

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <vector>

#include "leat/pipeline/ops/param_reader.h"
#include "tests/op/kinds.h"

namespace leat {
namespace {

class Rolled final : public PictureEdit {
 public:
  explicit Rolled(std::uint32_t by) : by_(by) {}

  void apply(const PictureValues& values) const override {
    const std::size_t item = size_bytes_of(values.dtype);
    const std::uint32_t width = values.size.width;
    std::vector<std::byte> row(item * width);
    for (std::uint32_t c = 0; c < values.channels; ++c) {
      for (std::uint32_t y = 0; y < values.size.height; ++y) {
        for (std::uint32_t x = 0; x < width; ++x) {
          std::memcpy(&row[item * ((x + by_) % width)], values.at(x, y, c),
                      item);
        }
        for (std::uint32_t x = 0; x < width; ++x) {
          std::memcpy(values.at(x, y, c), &row[item * x], item);
        }
      }
    }
  }

  DrawnOp drawn() const override {
    return {.op = 0, .name = "", .values = {{"by", {1.0 * by_}}}};
  }

 private:
  const std::uint32_t by_;
};

class Roll final : public PictureOp {
 public:
  explicit Roll(ParamReader& params)
      : most_(params.whole_numbers("most", 1000, {1})[0]) {}

  Result<void> check(DType dtype, std::uint32_t) const override {
    if (dtype == DType::kUint8 || dtype == DType::kFloat32) return {};
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("works on uint8 and float32, and there is {}",
                             to_string(dtype)));
  }

  std::shared_ptr<const PictureEdit> draw(PixelSize,
                                          Draws& draws) const override {
    const std::uint32_t by = draws.below(most_ + 1);
    return by == 0 ? nullptr : std::make_shared<const Rolled>(by);
  }

 private:
  const std::uint32_t most_;
};

std::shared_ptr<const PictureOp> make_roll(ParamReader& params) {
  return std::make_shared<const Roll>(params);
}

constexpr std::array kParams = {
    ParamInfo{"most", ParamKind::kPixels, "", "columns, 0 to 1000"},
    kIndependent};

}  // namespace

constinit const PictureOpKind kRoll = {
    .info = {"roll", "move all to the right, by columns that are drawn",
             kParams},
    .moves_pixels = true,
    .make = make_roll};

}  // namespace leat
