#include "leat/pipeline/ops/joint_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/codec/testing/encode_image.h"
#include "leat/pipeline/program/sample_view.h"
#include "leat/pipeline/program/user_function.h"

namespace leat {
namespace {

using ::testing::HasSubstr;

const std::vector<FieldSpec> kJointFields = {{"image", FieldKind::kBytes},
                                             {"mask", FieldKind::kBytes},
                                             {"txt", FieldKind::kBytes}};

/// Exchanges what it gets.
class Swap final : public UserFunction {
 public:
  Result<Value> call(const FunctionInput&, const SampleRandom&) const override {
    return Error(ErrorCode::kInternal, "this takes two");
  }
  Result<std::vector<Value>> call_joint(std::span<const FunctionInput> inputs,
                                        const SampleRandom&) const override {
    ++calls;
    std::vector<Value> made;
    for (std::size_t i = inputs.size(); i-- > 0;) {
      const FunctionInput& input = inputs[i];
      if (input.kind != FunctionInput::Kind::kArray) {
        made.emplace_back(std::string(as_text(input.bytes)));
        continue;
      }
      ArrayValue value{input.spec, Buffer(input.bytes.size())};
      std::ranges::copy(input.bytes, value.bytes.span().begin());
      made.emplace_back(std::move(value));
    }
    return made;
  }
  mutable std::atomic<int> calls = 0;
};

class JointSample final : public SampleView {
 public:
  std::span<const std::byte> bytes_of(std::size_t column) const override {
    return as_bytes(columns[column]);
  }
  std::span<const std::byte> record_of(std::size_t) const override {
    return {};
  }
  std::vector<std::string> columns = {
      testing::encode_png(testing::picture(20, 10)),
      testing::encode_png(testing::picture(20, 30)), "words"};
};

class JointProgramTest : public ::testing::Test {
 protected:
  /// "*" is the function, on `fields`.
  Result<std::vector<OutputField>> compile(const std::vector<std::string>& ops,
                                           const std::string& fields) {
    std::vector<OpSpec> specs;
    for (const std::string& op : ops) {
      if (op == "*") {
        specs.push_back({"python", "{\"fields\": " + fields + "}", swap_});
        continue;
      }
      LEAT_TRY(const auto parsed, parse_ops(op));
      specs.insert(specs.end(), parsed.begin(), parsed.end());
    }
    return compile_ops(specs, kJointFields);
  }

  Result<Value> run(const OutputField& field) {
    RunNotes notes;
    return field.value_program->run(
        {as_bytes(sample_.columns[field.source]), &sample_}, {},
        *make_scratch(), notes);
  }

  const std::shared_ptr<Swap> swap_ = std::make_shared<Swap>();
  JointSample sample_;
};

TensorSpec spec_of(const Result<Value>& value) {
  EXPECT_TRUE(value) << value.error().message();
  return std::get<ArrayValue>(*value).spec;
}

TEST_F(JointProgramTest, AFunctionSeesSeveralFieldsOnceASample) {
  const auto outputs = compile({"decode_image:field=image:layout=HWC",
                                "decode_image:field=mask:to=mask:layout=HWC",
                                "*", "resize:5:field=image"},
                               R"(["image", "mask"])");
  ASSERT_TRUE(outputs) << outputs.error().message();

  // The field of 20 x 30 is the image now, and its shorter side 5.
  EXPECT_EQ(spec_of(run(outputs->at(0))),
            (TensorSpec{DType::kUint8, {7, 5, 3}}));
  EXPECT_EQ(spec_of(run(outputs->at(1))),
            (TensorSpec{DType::kUint8, {10, 20, 3}}));
  EXPECT_EQ(swap_->calls, 1);
  EXPECT_EQ(outputs->at(0).cut_chain, nullptr);
  EXPECT_THAT(outputs->at(0).also_read, ::testing::ElementsAre(0, 1));
}

TEST_F(JointProgramTest, FieldsWithoutOpsComeAsTheyAre) {
  const auto outputs =
      compile({"decode_image:field=image", "*"}, R"(["image", "txt"])");
  ASSERT_TRUE(outputs) << outputs.error().message();

  const Result<Value> image = run(outputs->at(0));

  ASSERT_TRUE(image) << image.error().message();
  EXPECT_EQ(std::get<std::string>(*image), "words");
}

TEST_F(JointProgramTest, NeedsTheWholeSample) {
  const auto outputs =
      compile({"decode_image:field=image", "*"}, R"(["image", "txt"])");
  RunNotes notes;
  const auto value = outputs->at(0).value_program->run(
      as_bytes(sample_.columns[0]), {}, *make_scratch(), notes);

  ASSERT_FALSE(value);
  EXPECT_THAT(value.error().message(), HasSubstr("use a loader"));
}

TEST_F(JointProgramTest, FieldsAreNamedOnceAndThere) {
  const auto error_of = [this](const std::string& fields) {
    const auto outputs = compile({"decode_image:field=image", "*"}, fields);
    return outputs ? "" : outputs.error().message();
  };
  EXPECT_THAT(error_of(R"(["image", "image"])"), HasSubstr("twice"));
  EXPECT_THAT(error_of(R"(["image"])"), HasSubstr("say field="));
  EXPECT_THAT(error_of(R"(["image", "none"])"), HasSubstr("no field 'none'"));
  EXPECT_THAT(error_of(R"(["image", 3])"), HasSubstr("list of names"));
}

}  // namespace
}  // namespace leat
