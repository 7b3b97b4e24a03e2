// The numbers of a feature of a tf.train.Example.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "leat/codec/tfrecord/feature_numbers.h"
#include "leat/pipeline/ops/param_reader.h"
#include "leat/pipeline/ops/parsers/array_programs.h"
#include "leat/pipeline/ops/parsers/kinds.h"
#include "leat/pipeline/ops/store_numbers.h"

namespace leat {
namespace {

constexpr Choice<std::optional<DType>> kFeatureTypes[] = {
    {"int64", DType::kInt64},     {"int32", DType::kInt32},
    {"int16", DType::kInt16},     {"int8", DType::kInt8},
    {"uint8", DType::kUint8},     {"uint16", DType::kUint16},
    {"uint32", DType::kUint32},   {"uint64", DType::kUint64},
    {"float32", DType::kFloat32}, {"float64", DType::kFloat64},
    {"bool", DType::kBool}};

class FeatureFormat {
 public:
  struct Found {
    FeatureNumbers numbers;
    TensorSpec spec;
  };

  /// Without a type, int64 or float32, as they are.
  FeatureFormat(std::optional<DType> dtype, Joining joining, std::string field)
      : dtype_(dtype), joining_(joining), field_(std::move(field)) {}

  /// One number is an array without dimensions, unless lists may be ragged.
  Result<Found> read(std::span<const std::byte> encoded) const {
    Result<FeatureNumbers> numbers = read_feature_numbers(encoded);
    if (!numbers) {
      return Error(numbers.error().code(),
                   fmt::format("{}: {}; a bytes feature needs DecodeImage, "
                               "ParseText or no op",
                               field_, numbers.error().message()));
    }
    const bool is_float = std::holds_alternative<std::vector<float>>(*numbers);
    TensorSpec spec{dtype_.value_or(is_float ? DType::kFloat32 : DType::kInt64),
                    {}};
    const std::size_t count =
        std::visit([](const auto& each) { return each.size(); }, *numbers);
    if (count != 1 || joining_ == Joining::kRagged) {
      spec.shape = {static_cast<std::int64_t>(count)};
    }
    return Found{*std::move(numbers), std::move(spec)};
  }

  Result<void> store(const Found& array, std::span<std::byte> out) const {
    Result<void> stored;
    const auto* const floats = std::get_if<std::vector<float>>(&array.numbers);
    if (floats == nullptr) {
      stored = store_numbers(std::get<std::vector<std::int64_t>>(array.numbers),
                             array.spec.dtype, out);
    } else if (array.spec.dtype == DType::kFloat32) {
      std::ranges::copy(std::as_bytes(std::span(*floats)), out.begin());
    } else {
      stored =
          store_numbers(std::vector<double>(floats->begin(), floats->end()),
                        array.spec.dtype, out);
    }
    if (!stored) return std::move(stored).error().while_doing(field_);
    return {};
  }

  std::uint64_t most_bytes(std::uint64_t encoded_bytes) const {
    // A number takes at least one byte of the feature, as small whole ones do.
    return encoded_bytes * size_bytes_of(dtype_.value_or(DType::kInt64));
  }

  std::string remedy() const {
    return "leat.ops.ParseFeature(ragged=True) takes lists of unequal length";
  }
  std::string ragged_remedy() const {
    return "leat.ops.ParseFeature(dtype=...) makes all of one type";
  }

 private:
  std::optional<DType> dtype_;
  Joining joining_;
  std::string field_;
};

ParseField make_feature(ParamReader& params) {
  const Joining joining = params.joining();
  std::optional<DType> dtype;
  if (!params.is_null("dtype")) {
    dtype = params.choice<std::optional<DType>>("dtype", kFeatureTypes);
  }
  return [=](const std::string& field) {
    return array_program(FeatureFormat(dtype, joining, field), joining);
  };
}

constexpr std::array kFeatureParams = {
    ParamInfo{"dtype", ParamKind::kText, "null",
              "int8 to uint64, float32, float64 or bool; default: int64 or "
              "float32, as they are stored"},
    ParamInfo{"ragged", ParamKind::kFlag, "false",
              "lists may differ in length"},
};

}  // namespace

constinit const ParseOpKind kParseFeature = {
    .info = {"parse_feature", "the numbers of a feature of a tf.train.Example",
             kFeatureParams, "field"},
    .make = make_feature};

}  // namespace leat
