#include "leat/pipeline/ops/parse_op.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "leat/codec/testing/tfrecord_builder.h"
#include "leat/pipeline/ops/op_table.h"
#include "leat/pipeline/ops/store_numbers.h"

namespace leat {
namespace {

using ::testing::HasSubstr;

const std::vector<FieldSpec> kWebDataset = {{"jpg"},
                                            {"cls"},
                                            {"json"},
                                            {"npy"},
                                            {"txt"},
                                            {"flt"},
                                            {"label", FieldKind::kInt64}};

Result<std::vector<OutputField>> compile_parser(
    std::string_view ops, const std::vector<FieldSpec>& fields = kWebDataset) {
  LEAT_TRY(const auto specs, parse_ops(ops));
  return compile_ops(specs, fields);
}

std::string parser_error(std::string_view ops) {
  const auto compiled = compile_parser(ops);
  EXPECT_FALSE(compiled) << ops;
  return compiled ? "" : compiled.error().message();
}

template <class T>
T run_one(std::string_view ops, std::string_view text) {
  const auto outputs = compile_parser(ops, {{"data"}});
  EXPECT_TRUE(outputs) << outputs.error().message();
  T value{};
  const ScratchRef scratch = make_scratch();
  RunNotes notes;
  const auto done = (*outputs)[0].program->run(
      as_bytes(text), {}, *scratch,
      std::as_writable_bytes(std::span(&value, 1)), notes);
  EXPECT_TRUE(done) << done.error().message();
  return value;
}

TEST(ParseOpsTest, FindWebDatasetsFieldsByTheirExtensions) {
  const auto outputs = compile_parser(
      "decode_image,parse_int,parse_json:a.b[0]:to=first,"
      "parse_json:field=json:to=whole,load_npy,parse_text,"
      "parse_float:flt:to=float");

  ASSERT_TRUE(outputs) << outputs.error().message();
  std::vector<std::string> names;
  for (const OutputField& output : *outputs) names.push_back(output.name);
  EXPECT_THAT(names, ::testing::ElementsAre("image", "cls", "first", "whole",
                                            "npy", "txt", "float", "label"));
  EXPECT_EQ((*outputs)[1].program->output(), (TensorSpec{DType::kInt64, {}}));
  EXPECT_EQ((*outputs)[2].program, nullptr);
  EXPECT_NE((*outputs)[2].value_program, nullptr);
  EXPECT_EQ((*outputs)[2].source, (*outputs)[3].source);
  EXPECT_EQ((*outputs)[4].program->output(), std::nullopt);
}

TEST(ParseOpsTest, TakesTheUsualParameterWithoutItsName) {
  for (const OpInfo& op : op_table()) {
    EXPECT_NE(find_param(op, unnamed_param(op)), nullptr) << op.name;
  }
  EXPECT_TRUE(compile_parser("parse_int:cls:dtype=int32"));
  EXPECT_TRUE(compile_parser("parse_text:txt"));
  EXPECT_TRUE(compile_parser("load_npy:npy:ragged=true"));
  EXPECT_THAT(parser_error("parse_json:a..b"), HasSubstr("no path at \"..b\""));
  EXPECT_THAT(ops_help(), HasSubstr("parse_text[:field]"));
}

TEST(ParseOpsTest, SayWhatIsWrong) {
  EXPECT_THAT(parser_error("parse_int:dtype=float32"),
              HasSubstr("must be one of int64, int32"));
  EXPECT_THAT(parser_error("parse_json:dtype=text"), HasSubstr("bool, str"));
  EXPECT_TRUE(compile_parser("load_litdata_array:npy:ragged=true"));
  EXPECT_TRUE(compile_parser("load_mds_array:npy:dtype=int16"));
  EXPECT_THAT(parser_error("load_mds_array:npy:dtype=bool"),
              HasSubstr("dtype must be one of uint8"));
  EXPECT_THAT(parser_error("parse_int:label"),
              HasSubstr("'label' is a number or a text of the catalogue"));
  EXPECT_THAT(parser_error("parse_float"), HasSubstr("say which field"));
  EXPECT_THAT(parser_error("parse_int,resize:8"), HasSubstr("needs an image"));
  EXPECT_THAT(parser_error("load_npy,resize:8:field=npy"),
              HasSubstr("'npy' is what load_npy made"));
}

TEST(ParseOpsTest, ImageOpsGoOnWithTheImageBeforeThem) {
  const auto outputs = compile_parser("decode_image,parse_int,resize:8/8");

  ASSERT_TRUE(outputs) << outputs.error().message();
  EXPECT_EQ((*outputs)[0].program->output(),
            (TensorSpec{DType::kUint8, {3, 8, 8}}));
}

TEST(ParseOpsTest, ReadTheNumbersOfFeatures) {
  const std::string whole = testing::int64_feature({-7});
  const std::string real = testing::float_feature({1.5F});

  EXPECT_EQ(run_one<std::int64_t>("parse_feature", whole), -7);
  EXPECT_EQ(run_one<std::int8_t>("parse_feature:dtype=int8", whole), -7);
  EXPECT_EQ(run_one<float>("parse_feature", real), 1.5F);
  EXPECT_EQ(run_one<double>("parse_feature:dtype=float64", real), 1.5);
}

TEST(ParseOpsTest, AFeatureOfOneNumberHasNoDimension) {
  const auto outputs = compile_parser("parse_feature", {{"data"}});
  ASSERT_TRUE(outputs) << outputs.error().message();
  const auto shape_of = [&](const std::string& feature) {
    return (*outputs)[0].program->output_for(as_bytes(feature))->shape;
  };

  EXPECT_THAT(shape_of(testing::int64_feature({5})), ::testing::IsEmpty());
  EXPECT_THAT(shape_of(testing::int64_feature({5, 6})),
              ::testing::ElementsAre(2));
  EXPECT_THAT(shape_of(testing::float_feature({})), ::testing::ElementsAre(0));
}

TEST(ParseOpsTest, WriteNumbersOfTheTypeThatWasAskedFor) {
  EXPECT_EQ(run_one<std::int64_t>("parse_int", "-3\n"), -3);
  EXPECT_EQ(run_one<std::uint8_t>("parse_int:dtype=uint8", "200"), 200);
  EXPECT_EQ(
      run_one<std::uint64_t>("parse_int:dtype=uint64", "18446744073709551615"),
      std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(run_one<double>("parse_float", "0.1"), 0.1);
  EXPECT_EQ(run_one<float>("parse_float:dtype=float32", "0.1"), 0.1f);
}

template <class From>
bool fits(From number, DType dtype) {
  std::byte into[8];
  const From numbers[] = {number};
  return store_numbers(numbers, dtype,
                       std::span(into).first(size_bytes_of(dtype)))
      .has_value();
}

TEST(StoreNumbersTest, RefusesWhatWouldBecomeAnotherNumber) {
  EXPECT_TRUE(fits(std::int64_t{-128}, DType::kInt8));
  EXPECT_FALSE(fits(std::int64_t{-129}, DType::kInt8));
  EXPECT_TRUE(fits(std::int64_t{255}, DType::kUint8));
  EXPECT_FALSE(fits(std::int64_t{256}, DType::kUint8));
  EXPECT_FALSE(fits(std::int64_t{-1}, DType::kUint64));
  EXPECT_TRUE(fits(std::int64_t{1}, DType::kBool));
  EXPECT_FALSE(fits(std::int64_t{2}, DType::kBool));
  EXPECT_TRUE(fits(127.0, DType::kInt8));
  EXPECT_FALSE(fits(128.0, DType::kInt8));
  EXPECT_TRUE(fits(-128.0, DType::kInt8));
  EXPECT_FALSE(fits(0.5, DType::kInt8));
  EXPECT_FALSE(fits(std::nan(""), DType::kInt64));
  EXPECT_TRUE(fits(-0x1p63, DType::kInt64));
  EXPECT_FALSE(fits(0x1p63, DType::kInt64));
  EXPECT_TRUE(fits(0x1p63, DType::kUint64));
  EXPECT_FALSE(fits(0x1p64, DType::kUint64));
  EXPECT_FALSE(fits(1e300, DType::kFloat32));
  EXPECT_FALSE(fits(-0x1.ffffffp127, DType::kFloat32));
  EXPECT_TRUE(fits(0x1.fffffefffffffp127, DType::kFloat32));  // Rounds down.
  EXPECT_TRUE(fits(std::numeric_limits<double>::infinity(), DType::kFloat32));
  EXPECT_TRUE(fits(std::nan(""), DType::kFloat32));
  EXPECT_TRUE(fits(1e300, DType::kFloat64));
}

}  // namespace
}  // namespace leat
