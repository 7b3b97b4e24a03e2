#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "leat/pipeline/ops/op.h"
#include "leat/pipeline/ops/op_table.h"

namespace leat {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMostSide = 65'535;
const std::vector<double> kImagenetMean = {0.485, 0.456, 0.406};
const std::vector<double> kImagenetStd = {0.229, 0.224, 0.225};

template <class T>
struct Choice {
  std::string_view name;
  T value;
};

/// Reads the parameters of one op by the table. The first thing that is wrong
/// is kept, and whatever is read after that is a default.
class ParamReader {
 public:
  ParamReader(const OpInfo& op, const Json& given) : op_(op), given_(given) {
    for (const auto& [name, value] : given.items()) {
      if (find_param(op, name) == nullptr) {
        fail(fmt::format("has no parameter '{}'; it has {}", name,
                         param_names(op)));
      }
    }
  }

  const std::optional<Error>& error() const { return error_; }

  std::string text(std::string_view name) {
    const Json value = value_of(name);
    if (!value.is_string()) {
      fail_value(name, value, "must be a string");
      return {};
    }
    return value.get<std::string>();
  }

  template <class T, std::size_t kCount>
  T choice(std::string_view name, const Choice<T> (&choices)[kCount]) {
    const Json value = value_of(name);
    std::string names;
    for (const Choice<T>& choice : choices) {
      if (value.is_string() && value.get<std::string>() == choice.name) {
        return choice.value;
      }
      names += names.empty() ? "" : ", ";
      names += choice.name;
    }
    fail_value(name, value, "must be one of " + names);
    return choices[0].value;
  }

  bool flag(std::string_view name) {
    const Json value = value_of(name);
    if (value.is_boolean()) return value.get<bool>();
    fail_value(name, value, "must be true or false");
    return false;
  }

  std::uint64_t count(std::string_view name) {
    const Json value = value_of(name);
    if (value.is_number_integer() && value.get<std::int64_t>() > 0) {
      return value.get<std::uint64_t>();
    }
    fail_value(name, value, "must be a whole number above 0");
    return 1;
  }

  double number(std::string_view name, double low, double high) {
    const Json value = value_of(name);
    const double number = number_in(value);
    if (number >= low && number <= high) return number;
    fail_value(name, value, fmt::format("must be from {} to {}", low, high));
    return low;
  }

  std::array<double, 2> range(std::string_view name, double most) {
    const Json value = value_of(name);
    if (value.is_array() && value.size() == 2) {
      const double low = number_in(value[0]);
      const double high = number_in(value[1]);
      if (low > 0 && low <= high && high <= most) return {low, high};
    }
    fail_value(name, value,
               fmt::format("must be two numbers, 0 < low <= high <= {}", most));
    return {1, 1};
  }

  /// A side alone is returned in `*side` if that is given, else it is a square.
  PixelSize size(std::string_view name, std::uint32_t* side) {
    const Json value = value_of(name);
    if (const std::uint32_t one = side_in(value)) {
      if (side == nullptr) return {one, one};
      *side = one;
      return {};
    }
    if (value.is_array() && value.size() == 2) {
      const PixelSize size{side_in(value[1]), side_in(value[0])};
      if (size.width != 0 && size.height != 0) return size;
    }
    fail_value(name, value,
               fmt::format("must be a side from 1 to {} pixels, or [height, "
                           "width]",
                           kMostSide));
    return {1, 1};
  }

  /// Empty if not given.
  std::vector<double> numbers(std::string_view name,
                              const std::vector<double>& imagenet) {
    const Json value = value_of(name);
    if (value.is_null()) return {};
    if (value == "imagenet") return imagenet;
    const Json list = value.is_array() ? value : Json::array({value});
    std::vector<double> numbers;
    for (const Json& entry : list) numbers.push_back(number_in(entry));
    for (const double number : numbers) {
      if (!std::isfinite(number)) numbers.clear();
    }
    if (numbers.size() != 1 && numbers.size() != 3) {
      fail_value(name, value, "must be 1 or 3 numbers, or \"imagenet\"");
    }
    return numbers;
  }

  void fail(std::string_view what) {
    if (error_) return;
    error_.emplace(ErrorCode::kInvalidArgument,
                   fmt::format("{} {}", op_.name, what));
  }

  bool was_given(std::string_view name, std::string_view value) const {
    const auto found = given_.find(std::string(name));
    return found != given_.end() && *found == value;
  }

 private:
  Json value_of(std::string_view name) {
    const auto found = given_.find(std::string(name));
    if (found != given_.end()) return *found;
    const ParamInfo* param = find_param(op_, name);
    LEAT_CHECK(param != nullptr);
    if (!param->default_json.empty()) return Json::parse(param->default_json);
    fail(fmt::format("needs '{}': {}", name, param->doc));
    return {};
  }

  static double number_in(const Json& value) {
    return value.is_number() ? value.get<double>() : std::nan("");
  }

  /// 0 if it is no side.
  static std::uint32_t side_in(const Json& value) {
    if (!value.is_number_integer()) return 0;
    const auto side = value.get<std::int64_t>();
    return side > 0 && side <= kMostSide ? static_cast<std::uint32_t>(side) : 0;
  }

  void fail_value(std::string_view name, const Json& value,
                  std::string_view what) {
    fail(fmt::format("{}={} {}", name, value.dump(), what));
  }

  const OpInfo& op_;
  const Json& given_;
  std::optional<Error> error_;
};

Interpolation interpolation_in(ParamReader& params) {
  return params.choice<Interpolation>("interpolation",
                                      {{"nearest", Interpolation::kNearest},
                                       {"box", Interpolation::kBox},
                                       {"bilinear", Interpolation::kBilinear},
                                       {"hamming", Interpolation::kHamming},
                                       {"bicubic", Interpolation::kBicubic},
                                       {"lanczos", Interpolation::kLanczos}});
}

OpParams decode_image(ParamReader& params) {
  DecodeImageOp op;
  op.mode = params.choice<PixelMode>(
      "mode", {{"RGB", PixelMode::kRgb}, {"L", PixelMode::kGrey}});
  op.layout = params.choice<PixelLayout>(
      "layout", {{"CHW", PixelLayout::kChw}, {"HWC", PixelLayout::kHwc}});
  op.exif_orientation = params.flag("exif_orientation")
                            ? ExifOrientation::kApply
                            : ExifOrientation::kIgnore;
  op.dct_scaling =
      params.flag("exact") ? DctScaling::kOff : DctScaling::kAllowed;
  op.max_pixels = params.count("max_pixels");
  return op;
}

OpParams resize(ParamReader& params) {
  ResizeOp op;
  op.size = params.size("size", &op.shorter_side);
  op.interpolation = interpolation_in(params);
  return op;
}

OpParams center_crop(ParamReader& params) {
  return CenterCropOp{params.size("size", nullptr)};
}

OpParams random_resized_crop(ParamReader& params) {
  RandomResizedCropOp op;
  op.size = params.size("size", nullptr);
  op.scale = params.range("scale", 1.0);
  op.ratio = params.range("ratio", 1000.0);
  op.interpolation = interpolation_in(params);
  return op;
}

OpParams random_horizontal_flip(ParamReader& params) {
  return RandomHorizontalFlipOp{params.number("p", 0.0, 1.0)};
}

OpParams normalize(ParamReader& params) {
  NormalizeOp op;
  op.mean = params.numbers("mean", kImagenetMean);
  op.std = params.numbers("std", kImagenetStd);
  if (op.std.empty()) {
    op.std = kImagenetStd;
    if (!params.was_given("mean", "imagenet")) {
      params.fail("needs 'std' where mean is not \"imagenet\"");
    }
  }
  for (const double value : op.std) {
    if (!(std::abs(value) > 0)) params.fail("divides by a std of 0");
  }
  return op;
}

OpParams cast(ParamReader& params) {
  CastOp op;
  op.dtype = params.choice<DType>(
      "dtype", {{"uint8", DType::kUint8}, {"float32", DType::kFloat32}});
  op.scale = params.flag("scale") ? CastScale::kTo01 : CastScale::kNone;
  return op;
}

using MakeParams = OpParams (*)(ParamReader&);

constexpr Choice<MakeParams> kMakers[] = {
    {"decode_image", decode_image},
    {"resize", resize},
    {"center_crop", center_crop},
    {"random_resized_crop", random_resized_crop},
    {"random_horizontal_flip", random_horizontal_flip},
    {"normalize", normalize},
    {"cast", cast},
};

}  // namespace

Result<Op> make_op(const OpSpec& spec, std::size_t index) {
  const OpInfo* info = find_op(spec.name);
  if (info == nullptr) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("there is no op '{}'; there are {}", spec.name,
                             op_names()));
  }
  const Json given =
      Json::parse(spec.params_json, nullptr, /*allow_exceptions=*/false);
  if (!given.is_object()) {
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: its parameters are no JSON object", spec.name));
  }
  ParamReader params(*info, given);
  Op op;
  op.name = spec.name;
  op.index = index;
  op.field = params.text("field");
  op.to = params.text("to");
  for (const auto& [name, make] : kMakers) {
    if (name == spec.name) op.params = make(params);
  }
  if (params.error()) return *params.error();
  return op;
}

}  // namespace leat
