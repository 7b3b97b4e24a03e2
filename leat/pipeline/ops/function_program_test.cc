#include "leat/pipeline/ops/function_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "leat/codec/testing/encode_image.h"
#include "leat/pipeline/program/user_function.h"

namespace leat {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Calls final : public UserFunction {
 public:
  using Function = std::function<Result<Value>(const FunctionInput&)>;
  explicit Calls(Function function) : function_(std::move(function)) {}
  Result<Value> call(const FunctionInput& input,
                     const SampleRandom& /*random*/) const override {
    return function_(input);
  }

 private:
  const Function function_;
};

OpSpec function(Calls::Function body) {
  return {.name = "python",
          .params_json = "{}",
          .function = std::make_shared<const Calls>(std::move(body))};
}

Value array_of(TensorSpec spec, std::span<const std::byte> from) {
  ArrayValue made{.spec = std::move(spec), .bytes = Buffer(from.size())};
  std::ranges::copy(from, made.bytes.span().begin());
  return made;
}

OpSpec same() {
  return function([](const FunctionInput& input) -> Result<Value> {
    return array_of(input.spec, input.bytes);
  });
}

/// Parsed ops, with a function for each "*".
Result<OutputField> compile_function(const std::vector<std::string>& ops,
                                     const OpSpec& each) {
  std::vector<OpSpec> specs;
  for (const std::string& op : ops) {
    if (op == "*") {
      specs.push_back(each);
      continue;
    }
    LEAT_TRY(const auto parsed, parse_ops(op));
    specs.insert(specs.end(), parsed.begin(), parsed.end());
  }
  LEAT_TRY(auto outputs, compile_ops(specs, {{"jpg", FieldKind::kBytes}}));
  return std::move(outputs[0]);
}

Result<Value> run_function(const std::vector<std::string>& ops,
                           const OpSpec& each, const std::string& encoded) {
  LEAT_TRY(const OutputField field, compile_function(ops, each));
  const ScratchRef scratch = make_scratch();
  RunNotes notes;
  const SampleRandom random{.seed = 3, .epoch = 1, .sample = {7}};
  const auto bytes = std::as_bytes(std::span(encoded));
  if (field.value_program != nullptr) {
    return field.value_program->run(bytes, random, *scratch, notes);
  }
  LEAT_TRY(TensorSpec spec, field.program->output_for(bytes));
  Buffer out(spec.size_bytes());
  LEAT_TRY_VOID(field.program->run(bytes, random, *scratch, out.span(), notes));
  return Value(ArrayValue{std::move(spec), std::move(out)});
}

std::string png() { return testing::encode_png(testing::picture(37, 23, 3)); }

std::string function_error(const Result<Value>& value) {
  return value ? "" : value.error().message();
}

void expect_equal(const Result<Value>& a, const Result<Value>& b) {
  ASSERT_TRUE(a) << a.error().message();
  ASSERT_TRUE(b) << b.error().message();
  const auto& left = std::get<ArrayValue>(*a);
  const auto& right = std::get<ArrayValue>(*b);
  EXPECT_EQ(left.spec, right.spec);
  EXPECT_TRUE(std::ranges::equal(left.bytes.span(), right.bytes.span()));
}

TEST(FunctionProgramTest, OpsBehindAFunctionSeeThePixelsThatItGave) {
  // flip:0 takes the place of the function: draws go by an op's place.
  const std::string nothing = "random_horizontal_flip:0";
  for (const std::string layout : {"HWC", "CHW"}) {
    const std::string decode = "decode_image:layout=" + layout;
    for (const std::string behind :
         {"resize:8/9", "center_crop:11", "random_resized_crop:8", "pad:5",
          "normalize:imagenet", "random_crop:9,normalize:imagenet"}) {
      expect_equal(run_function({decode, "*", behind}, same(), png()),
                   run_function({decode, nothing, behind}, same(), png()));
    }
  }
}

TEST(FunctionProgramTest, WhatIsNoImageOfTheLayoutIsRefused) {
  const auto gives = [](const TensorSpec& spec) {
    return function([spec](const FunctionInput&) -> Result<Value> {
      return Value(ArrayValue{spec, Buffer(spec.size_bytes())});
    });
  };
  const std::vector<std::string> ops = {"decode_image:layout=HWC", "*",
                                        "resize:4/4"};

  for (const TensorSpec& wrong :
       std::vector<TensorSpec>{{DType::kFloat32, {4, 4, 3}},
                               {DType::kUint8, {3, 4, 4}},
                               {DType::kUint8, {4, 4}},
                               {DType::kUint8, {}},
                               {DType::kUint8, {0, 4, 3}},
                               {DType::kUint8, {70'000, 1, 3}},
                               {DType::kUint8, {1, 4, 4, 3}}}) {
    EXPECT_THAT(function_error(run_function(ops, gives(wrong), png())),
                AllOf(HasSubstr("a function gave"), HasSubstr("HWC")));
  }
  EXPECT_EQ(function_error(
                run_function(ops, gives({DType::kUint8, {1, 1, 3}}), png())),
            "");
}

TEST(FunctionProgramTest, AFunctionGetsTheBytesIfNothingCameBefore) {
  const OpSpec counts = function([](const FunctionInput& input) {
    EXPECT_EQ(input.kind, FunctionInput::Kind::kBytes);
    return Result<Value>(std::to_string(input.bytes.size()));
  });

  const Result<Value> value = run_function({"*"}, counts, "12345");

  ASSERT_TRUE(value) << value.error().message();
  EXPECT_EQ(std::get<std::string>(*value), "5");
}

TEST(FunctionProgramTest, AFunctionGetsTheValueOfAColumn) {
  using Kind = FunctionInput::Kind;
  struct Row {
    FieldKind field;
    Kind kind;
    TensorSpec spec;
  };
  for (const Row& row :
       {Row{FieldKind::kInt64, Kind::kArray, {DType::kInt64, {}}},
        Row{FieldKind::kFloat64, Kind::kArray, {DType::kFloat64, {}}},
        Row{FieldKind::kString, Kind::kText, {}}}) {
    OpSpec op = function([&](const FunctionInput& input) -> Result<Value> {
      EXPECT_EQ(input.kind, row.kind);
      EXPECT_EQ(input.spec, row.spec);
      return Value(std::string(as_text(input.bytes)));
    });
    op.params_json = R"({"field": "label"})";
    const auto outputs =
        compile_ops({op}, {{"jpg", FieldKind::kBytes}, {"label", row.field}});
    ASSERT_TRUE(outputs) << outputs.error().message();
    RunNotes notes;

    const Result<Value> value = outputs->at(1).value_program->run(
        std::as_bytes(std::span("12345678", 8)), {}, *make_scratch(), notes);

    EXPECT_EQ(std::get<std::string>(*value), "12345678");
  }
}

TEST(FunctionProgramTest, ItsErrorIsPassedOn) {
  const OpSpec fails = function([](const FunctionInput&) -> Result<Value> {
    return Error(ErrorCode::kInvalidArgument, "no");
  });

  EXPECT_EQ(function_error(run_function({"decode_image", "*"}, fails, png())),
            "no");
}

TEST(FunctionProgramTest, TheCommandLineHasNoFunctions) {
  const Result<Value> value =
      run_function({"decode_image", "python"}, same(), png());

  EXPECT_THAT(function_error(value), HasSubstr("only be given in a program"));
}

}  // namespace
}  // namespace leat
