// A number, a text or a list of numbers out of a document of JSON.

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/errors.h"
#include "leat/codec/json/json_path.h"
#include "leat/codec/json/json_value.h"
#include "leat/codec/text/text.h"
#include "leat/pipeline/ops/param_reader.h"
#include "leat/pipeline/ops/parsers/kinds.h"
#include "leat/pipeline/ops/store_numbers.h"

namespace leat {
namespace {

constexpr Choice<std::optional<DType>> kJsonTypes[] = {
    {"int64", DType::kInt64},     {"int32", DType::kInt32},
    {"int16", DType::kInt16},     {"int8", DType::kInt8},
    {"uint8", DType::kUint8},     {"uint16", DType::kUint16},
    {"uint32", DType::kUint32},   {"uint64", DType::kUint64},
    {"float32", DType::kFloat32}, {"float64", DType::kFloat64},
    {"bool", DType::kBool},       {"str", std::nullopt}};

struct ParseJsonOp {
  JsonPath path;
  std::optional<DType> dtype;  ///< For numbers; none: as written.
  bool takes_text = true;
  bool takes_numbers = true;
  Joining joining = Joining::kStack;
};

class JsonProgram final : public ValueProgram {
 public:
  JsonProgram(ParseJsonOp op, std::string field)
      : op_(std::move(op)), field_(std::move(field)) {}

  Joining joining() const override { return op_.joining; }

  std::uint64_t most_bytes(std::uint64_t encoded_bytes) const override {
    // A number and a comma are two bytes, and become eight.
    const std::uint64_t numbers =
        std::min<std::uint64_t>(encoded_bytes / 2 + 1, kMostJsonNumbers) * 8;
    return op_.takes_text ? std::max(numbers, encoded_bytes) : numbers;
  }

  Result<Value> run(const SampleInput& input, const SampleRandom&, Scratch&,
                    RunNotes&) const override {
    Result<Value> value = find(input.encoded);
    if (!value) return std::move(value).error().while_doing(field_);
    return value;
  }

  std::string remedy() const override {
    std::string text;
    if (op_.takes_text && op_.takes_numbers) {
      text = "leat.ops.ParseJson(dtype=...) makes all of one type";
    }
    if (op_.joining == Joining::kStack && op_.takes_numbers) {
      text += text.empty() ? "leat.ops.ParseJson(" : ", (";
      text += "ragged=True) takes lists of unequal length";
    }
    return text.empty() ? "give all the same type and shape" : text;
  }

 private:
  Result<Value> find(std::span<const std::byte> encoded) const {
    LEAT_TRY(JsonValue found, find_json_value(encoded, op_.path));
    if (auto* text = std::get_if<std::string>(&found)) {
      if (op_.takes_text) return Value(std::move(*text));
      return corrupt("{} is a text and no {}", quoted(as_bytes(*text)),
                     to_string(*op_.dtype));
    }
    if (!op_.takes_numbers) {
      return corrupt("there are numbers, and no text as dtype=\"str\" says");
    }
    return array_of(std::get<JsonNumbers>(found));
  }

  Result<Value> array_of(JsonNumbers& numbers) const {
    ArrayValue array{{dtype_of(numbers.type), std::move(numbers.shape)}, {}};
    array.bytes = Buffer(array.spec.size_bytes());
    if (numbers.type == JsonNumber::kReal) {
      LEAT_TRY_VOID(
          store_numbers(numbers.real, array.spec.dtype, array.bytes.span()));
    } else {
      LEAT_TRY_VOID(
          store_numbers(numbers.whole, array.spec.dtype, array.bytes.span()));
    }
    return Value(std::move(array));
  }

  DType dtype_of(JsonNumber type) const {
    if (op_.dtype) return *op_.dtype;
    if (type == JsonNumber::kTruth) return DType::kBool;
    return type == JsonNumber::kWhole ? DType::kInt64 : DType::kFloat64;
  }

  const ParseJsonOp op_;
  const std::string field_;
};

ParseField make_json(ParamReader& params) {
  ParseJsonOp op;
  op.joining = params.joining();
  if (Result<JsonPath> path = parse_json_path(params.text("path")); path) {
    op.path = *std::move(path);
  } else {
    params.fail(path.error().message());
  }
  if (!params.is_null("dtype")) {
    op.dtype = params.choice<std::optional<DType>>("dtype", kJsonTypes);
    op.takes_text = !op.dtype;
    op.takes_numbers = op.dtype.has_value();
  }
  return [op](const std::string& field) -> FieldProgram {
    return {nullptr, std::make_shared<JsonProgram>(op, field)};
  };
}

constexpr std::string_view kUsualJsons[] = {"json", "jsn"};
constexpr std::array kJsonParams = {
    ParamInfo{
        "path", ParamKind::kText, R"("")",
        "where the value is, such as a.b[0]; default: the whole document"},
    ParamInfo{"dtype", ParamKind::kText, "null",
              "int8 to uint64, float32, float64, bool or str; default: int64, "
              "float64, bool or str, as it is written"},
    ParamInfo{"ragged", ParamKind::kFlag, "false",
              "lists may differ in length"},
};

}  // namespace

constinit const ParseOpKind kParseJson = {
    .info = {"parse_json", "a number, a text or a list of numbers out of JSON",
             kJsonParams, "path"},
    .usual_fields = kUsualJsons,
    .reads_texts = true,
    .make = make_json};

}  // namespace leat
