// A number that is written in decimal digits.

#include <array>
#include <string>
#include <utility>

#include "leat/base/errors.h"
#include "leat/codec/text/text.h"
#include "leat/pipeline/ops/param_reader.h"
#include "leat/pipeline/ops/parsers/kinds.h"
#include "leat/pipeline/ops/store_numbers.h"

namespace leat {
namespace {

constexpr Choice<DType> kWholeTypes[] = {
    {"int64", DType::kInt64},   {"int32", DType::kInt32},
    {"int16", DType::kInt16},   {"int8", DType::kInt8},
    {"uint8", DType::kUint8},   {"uint16", DType::kUint16},
    {"uint32", DType::kUint32}, {"uint64", DType::kUint64}};

template <class Number>
class NumberProgram final : public Program {
 public:
  using Parse = Result<Number> (*)(std::span<const std::byte>);

  NumberProgram(Parse parse, DType dtype, std::string field)
      : parse_(parse), dtype_(dtype), field_(std::move(field)) {}

  std::optional<TensorSpec> output() const override {
    return TensorSpec{dtype_, {}};
  }
  Result<TensorSpec> output_for(std::span<const std::byte>) const override {
    return TensorSpec{dtype_, {}};
  }
  Result<void> run(const SampleInput& input, const SampleRandom&, Scratch&,
                   std::span<std::byte> out, RunNotes&) const override {
    Result<Number> number = parse_(input.encoded);
    if (!number) return std::move(number).error().while_doing(field_);
    const Number one[] = {*number};
    Result<void> stored = store_numbers(one, dtype_, out);
    if (!stored) return Error(stored.error()).while_doing(field_);
    return {};
  }
  std::string remedy() const override { return {}; }

 private:
  const Parse parse_;
  const DType dtype_;
  const std::string field_;
};

template <class Number>
ParseField number_field(Result<Number> (*parse)(std::span<const std::byte>),
                        DType dtype) {
  return [=](const std::string& field) -> FieldProgram {
    return {std::make_shared<NumberProgram<Number>>(parse, dtype, field),
            nullptr};
  };
}

/// A number below 0 is one, and does not fit.
Result<std::uint64_t> parse_as_uint64(std::span<const std::byte> bytes) {
  const Result<std::int64_t> whole = parse_whole_number(bytes);
  if (!whole) return parse_unsigned_number(bytes);
  if (*whole < 0)
    return invalid("{} is no uint64; choose another dtype=", *whole);
  return static_cast<std::uint64_t>(*whole);
}

ParseField make_int(ParamReader& params) {
  const auto dtype = params.choice<DType>("dtype", kWholeTypes);
  return dtype == DType::kUint64 ? number_field(parse_as_uint64, dtype)
                                 : number_field(parse_whole_number, dtype);
}

ParseField make_float(ParamReader& params) {
  return number_field(
      parse_real_number,
      params.choice<DType>("dtype", {{"float64", DType::kFloat64},
                                     {"float32", DType::kFloat32}}));
}

constexpr std::string_view kUsualInts[] = {"cls",   "cls2", "class", "count",
                                           "index", "inx",  "id"};
constexpr std::array kIntParams = {
    ParamInfo{
        "dtype", ParamKind::kText, R"("int64")",
        "int8 to int64 or uint8 to uint64; what does not fit is an error"},
};
constexpr std::array kFloatParams = {
    ParamInfo{"dtype", ParamKind::kText, R"("float64")", "float32 or float64"},
};

}  // namespace

constinit const ParseOpKind kParseInt = {
    .info = {"parse_int", "decimal digits, as in .cls, to a whole number",
             kIntParams, "field"},
    .usual_fields = kUsualInts,
    .reads_texts = true,
    .make = make_int};

constinit const ParseOpKind kParseFloat = {
    .info = {"parse_float", "a decimal number", kFloatParams, "field"},
    .reads_texts = true,
    .make = make_float};

}  // namespace leat
