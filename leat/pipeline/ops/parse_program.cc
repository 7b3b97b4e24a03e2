#include "leat/pipeline/ops/parse_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "leat/base/check.h"
#include "leat/codec/json/json_value.h"
#include "leat/codec/litdata/litdata_array.h"
#include "leat/codec/mds/mds_array.h"
#include "leat/codec/npy/npy_header.h"
#include "leat/codec/text/text.h"
#include "leat/codec/tfrecord/feature_numbers.h"
#include "leat/pipeline/ops/store_numbers.h"
#include "leat/pipeline/program/value.h"

namespace leat {
namespace {

/// One number: ParseInt, ParseFloat.
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

/// A text that is checked to be UTF-8 and else left alone.
class TextProgram final : public ValueProgram {
 public:
  explicit TextProgram(std::string field) : field_(std::move(field)) {}

  Joining joining() const override { return Joining::kStack; }
  std::uint64_t most_bytes(std::uint64_t encoded_bytes) const override {
    return encoded_bytes;
  }
  Result<Value> run(const SampleInput& input, const SampleRandom&, Scratch&,
                    RunNotes&) const override {
    const std::span<const std::byte> encoded = input.encoded;
    const std::string_view text = as_text(encoded);
    if (const auto at = first_invalid_utf8(text)) {
      return Error(
          ErrorCode::kCorrupt,
          fmt::format("{}: no UTF-8 from byte {} on, {}; leave it without an "
                      "op to get its bytes",
                      field_, *at, quoted(encoded.subspan(*at))));
    }
    return Value(std::string(text));
  }
  std::string remedy() const override { return {}; }

 private:
  const std::string field_;
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
      return Error(ErrorCode::kCorrupt,
                   fmt::format("{} is a text and no {}",
                               quoted(as_bytes(*text)), to_string(*op_.dtype)));
    }
    if (!op_.takes_numbers) {
      return Error(ErrorCode::kCorrupt,
                   "there are numbers, and no text as dtype=\"str\" says");
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

/// An array in bytes: its type and shape, and its items.
struct EncodedArray {
  TensorSpec spec;
  std::span<const std::byte> items;
};

DType dtype_of(const NpyHeader& header) {
  const auto of_size = [&](DType one, DType two, DType four, DType eight) {
    switch (header.item_bytes) {
      case 1:
        return one;
      case 2:
        return two;
      case 4:
        return four;
      default:
        return eight;
    }
  };
  switch (header.kind) {
    case NpyKind::kBool:
      return DType::kBool;
    case NpyKind::kSigned:
      return of_size(DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64);
    case NpyKind::kUnsigned:
      return of_size(DType::kUint8, DType::kUint16, DType::kUint32,
                     DType::kUint64);
    case NpyKind::kFloat:
      return of_size(DType::kFloat16, DType::kFloat16, DType::kFloat32,
                     DType::kFloat64);
    case NpyKind::kComplex:
      return header.item_bytes == 8 ? DType::kComplex64 : DType::kComplex128;
  }
  return DType::kUint8;
}

/// A format of arrays.
struct ArrayFormat {
  std::function<Result<NpyHeader>(std::span<const std::byte>)> read_header;
  std::string op;  ///< As Python names it.
};

ArrayFormat npy_format() {
  return {.read_header =
              [](std::span<const std::byte> encoded) {
                return read_npy_header(encoded);
              },
          .op = "leat.ops.LoadNpy"};
}

ArrayFormat mds_format(const std::optional<MdsItems>& items) {
  return {.read_header =
              [items](std::span<const std::byte> encoded) {
                return read_mds_array(encoded, items);
              },
          .op = "leat.ops.LoadMdsArray"};
}

ArrayFormat litdata_format() {
  return {.read_header = read_litdata_array, .op = "leat.ops.LoadLitdataArray"};
}

Result<EncodedArray> read_array(std::span<const std::byte> encoded,
                                const ArrayFormat& format,
                                const std::string& field) {
  Result<NpyHeader> header = format.read_header(encoded);
  if (!header) return std::move(header).error().while_doing(field);
  EncodedArray array{{dtype_of(*header), std::move(header->shape)},
                     encoded.subspan(header->data_offset)};
  // A bool that is neither 0 nor 1 is no value of any bool.
  if (header->kind == NpyKind::kBool &&
      std::ranges::any_of(array.items,
                          [](std::byte item) { return item > std::byte{1}; })) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{}: a bool is neither 0 nor 1", field));
  }
  return array;
}

/// Arrays of one shape, straight into the slot.
class ArrayProgram final : public Program {
 public:
  ArrayProgram(ArrayFormat format, std::string field)
      : format_(std::move(format)), field_(std::move(field)) {}

  std::optional<TensorSpec> output() const override { return std::nullopt; }
  Result<TensorSpec> output_for(
      std::span<const std::byte> encoded) const override {
    LEAT_TRY(EncodedArray array, read_array(encoded, format_, field_));
    return std::move(array.spec);
  }
  Result<void> run(const SampleInput& input, const SampleRandom&, Scratch&,
                   std::span<std::byte> out, RunNotes&) const override {
    LEAT_TRY(const EncodedArray array,
             read_array(input.encoded, format_, field_));
    LEAT_CHECK(out.size() == array.items.size());
    std::ranges::copy(array.items, out.begin());
    return {};
  }
  std::string remedy() const override {
    return fmt::format(
        "save all with one type and shape; {}(ragged=True) takes arrays that "
        "differ in their first dimension, and collate= any",
        format_.op);
  }

 private:
  const ArrayFormat format_;
  const std::string field_;
};

/// Arrays that may differ in their first dimension.
class RaggedArrayProgram final : public ValueProgram {
 public:
  RaggedArrayProgram(ArrayFormat format, std::string field)
      : format_(std::move(format)), field_(std::move(field)) {}

  Joining joining() const override { return Joining::kRagged; }
  std::uint64_t most_bytes(std::uint64_t encoded_bytes) const override {
    return encoded_bytes;
  }
  Result<Value> run(const SampleInput& input, const SampleRandom&, Scratch&,
                    RunNotes&) const override {
    LEAT_TRY(EncodedArray array, read_array(input.encoded, format_, field_));
    Buffer bytes(array.items.size());
    std::ranges::copy(array.items, bytes.span().begin());
    return Value(ArrayValue{std::move(array.spec), std::move(bytes)});
  }
  std::string remedy() const override {
    return "save all with one type, and of one shape behind the first "
           "dimension";
  }

 private:
  const ArrayFormat format_;
  const std::string field_;
};

/// The numbers of a feature, and the array that they become.
struct FeatureArray {
  FeatureNumbers numbers;
  TensorSpec spec;
};

/// One number is an array without dimensions, unless lists may be ragged.
Result<FeatureArray> read_feature(std::span<const std::byte> encoded,
                                  const ParseFeatureOp& op,
                                  const std::string& field) {
  Result<FeatureNumbers> numbers = read_feature_numbers(encoded);
  if (!numbers) {
    return Error(numbers.error().code(),
                 fmt::format("{}: {}; a bytes feature needs DecodeImage, "
                             "ParseText or no op",
                             field, numbers.error().message()));
  }
  const bool is_float = std::holds_alternative<std::vector<float>>(*numbers);
  TensorSpec spec{op.dtype.value_or(is_float ? DType::kFloat32 : DType::kInt64),
                  {}};
  const std::size_t count =
      std::visit([](const auto& each) { return each.size(); }, *numbers);
  if (count != 1 || op.joining == Joining::kRagged) {
    spec.shape = {static_cast<std::int64_t>(count)};
  }
  return FeatureArray{*std::move(numbers), std::move(spec)};
}

Result<void> store_feature(const FeatureArray& array, const std::string& field,
                           std::span<std::byte> out) {
  LEAT_CHECK(out.size() == array.spec.size_bytes());
  Result<void> stored;
  const auto* const floats = std::get_if<std::vector<float>>(&array.numbers);
  if (floats == nullptr) {
    stored = store_numbers(std::get<std::vector<std::int64_t>>(array.numbers),
                           array.spec.dtype, out);
  } else if (array.spec.dtype == DType::kFloat32) {
    std::ranges::copy(std::as_bytes(std::span(*floats)), out.begin());
  } else {
    stored = store_numbers(std::vector<double>(floats->begin(), floats->end()),
                           array.spec.dtype, out);
  }
  if (!stored) return std::move(stored).error().while_doing(field);
  return {};
}

/// Features of as many numbers in each sample, straight into the slot.
class FeatureProgram final : public Program {
 public:
  FeatureProgram(const ParseFeatureOp& op, std::string field)
      : op_(op), field_(std::move(field)) {}

  std::optional<TensorSpec> output() const override { return std::nullopt; }
  Result<TensorSpec> output_for(
      std::span<const std::byte> encoded) const override {
    LEAT_TRY(FeatureArray array, read_feature(encoded, op_, field_));
    return std::move(array.spec);
  }
  Result<void> run(const SampleInput& input, const SampleRandom&, Scratch&,
                   std::span<std::byte> out, RunNotes&) const override {
    LEAT_TRY(const FeatureArray array,
             read_feature(input.encoded, op_, field_));
    return store_feature(array, field_, out);
  }
  std::string remedy() const override {
    return "leat.ops.ParseFeature(ragged=True) takes lists of unequal length";
  }

 private:
  const ParseFeatureOp op_;
  const std::string field_;
};

/// Features whose lists differ in length.
class RaggedFeatureProgram final : public ValueProgram {
 public:
  RaggedFeatureProgram(const ParseFeatureOp& op, std::string field)
      : op_(op), field_(std::move(field)) {}

  Joining joining() const override { return Joining::kRagged; }
  std::uint64_t most_bytes(std::uint64_t encoded_bytes) const override {
    // A small whole number is one byte.
    return encoded_bytes * size_bytes_of(op_.dtype.value_or(DType::kInt64));
  }
  Result<Value> run(const SampleInput& input, const SampleRandom&, Scratch&,
                    RunNotes&) const override {
    LEAT_TRY(FeatureArray array, read_feature(input.encoded, op_, field_));
    Buffer bytes(array.spec.size_bytes());
    LEAT_TRY_VOID(store_feature(array, field_, bytes.span()));
    return Value(ArrayValue{std::move(array.spec), std::move(bytes)});
  }
  std::string remedy() const override {
    return "leat.ops.ParseFeature(dtype=...) makes all of one type";
  }

 private:
  const ParseFeatureOp op_;
  const std::string field_;
};

void add_array_program(ArrayFormat format, Joining joining,
                       const std::string& field, OutputField& output) {
  if (joining == Joining::kRagged) {
    output.value_program =
        std::make_shared<RaggedArrayProgram>(std::move(format), field);
  } else {
    output.program = std::make_shared<ArrayProgram>(std::move(format), field);
  }
}

}  // namespace

void add_parse_program(const Op& op, const std::string& field,
                       OutputField& output) {
  if (const auto* whole = std::get_if<ParseIntOp>(&op.params)) {
    output.program = std::make_shared<NumberProgram<std::int64_t>>(
        parse_whole_number, whole->dtype, field);
  } else if (const auto* real = std::get_if<ParseFloatOp>(&op.params)) {
    output.program = std::make_shared<NumberProgram<double>>(
        parse_real_number, real->dtype, field);
  } else if (std::holds_alternative<ParseTextOp>(op.params)) {
    output.value_program = std::make_shared<TextProgram>(field);
  } else if (const auto* json = std::get_if<ParseJsonOp>(&op.params)) {
    output.value_program = std::make_shared<JsonProgram>(*json, field);
  } else if (const auto* feature = std::get_if<ParseFeatureOp>(&op.params)) {
    if (feature->joining == Joining::kRagged) {
      output.value_program =
          std::make_shared<RaggedFeatureProgram>(*feature, field);
    } else {
      output.program = std::make_shared<FeatureProgram>(*feature, field);
    }
  } else if (const auto* mds = std::get_if<LoadMdsArrayOp>(&op.params)) {
    add_array_program(mds_format(mds->items), mds->joining, field, output);
  } else if (const auto* array = std::get_if<LoadLitdataArrayOp>(&op.params)) {
    add_array_program(litdata_format(), array->joining, field, output);
  } else {
    add_array_program(npy_format(), std::get<LoadNpyOp>(op.params).joining,
                      field, output);
  }
}

}  // namespace leat
