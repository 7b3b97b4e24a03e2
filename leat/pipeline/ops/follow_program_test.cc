#include "leat/pipeline/ops/follow_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/codec/testing/encode_image.h"
#include "leat/pipeline/program/program.h"
#include "leat/pipeline/program/sample_view.h"

namespace leat {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<FieldSpec> kFollowedFields = {{"image", FieldKind::kBytes},
                                                {"json", FieldKind::kBytes}};

class FollowedSample final : public SampleView {
 public:
  FollowedSample(std::string json, std::uint16_t orientation)
      : columns_{testing::encode_png(testing::picture(40, 20),
                                     {.exif = testing::exif_of(orientation)}),
                 std::move(json)} {}
  std::span<const std::byte> bytes_of(std::size_t column) const override {
    return as_bytes(columns_[column]);
  }
  std::span<const std::byte> record_of(std::size_t) const override {
    return {};
  }

 private:
  const std::vector<std::string> columns_;
};

Result<std::vector<OutputField>> compile_following(const std::string& ops) {
  LEAT_TRY(const auto specs, parse_ops(ops));
  return compile_ops(specs, kFollowedFields);
}

std::string following_error(const std::string& ops) {
  const auto outputs = compile_following(ops);
  return outputs ? "" : outputs.error().message();
}

/// The value of a field for a document.
Result<ArrayValue> run_following(const std::string& ops,
                                 const std::string& name,
                                 const std::string& json,
                                 std::uint16_t orientation = 1) {
  LEAT_TRY(const auto outputs, compile_following(ops));
  FollowedSample sample(json, orientation);
  RunNotes notes;
  for (const OutputField& field : outputs) {
    if (field.name != name) continue;
    LEAT_TRY(Value value, field.value_program->run({as_bytes(json), &sample},
                                                   {}, *make_scratch(), notes));
    return std::get<ArrayValue>(std::move(value));
  }
  return Error(ErrorCode::kNotFound, "no such field");
}

template <class Number>
std::vector<Number> numbers(const Result<ArrayValue>& value) {
  EXPECT_TRUE(value) << value.error().message();
  std::vector<Number> all(value->bytes.size() / sizeof(Number));
  if (!all.empty()) {
    std::memcpy(all.data(), value->bytes.data(), value->bytes.size());
  }
  return all;
}

constexpr char kTwo[] =
    R"({"boxes": [[2, 4, 10, 12], [30, 0, 40, 10]], "labels": [7, 9]})";
constexpr char kParse[] =
    "decode_image:field=image,parse_boxes:boxes:labels=labels";

TEST(FollowProgramTest, BoxesAndTheirLabelsFollowThePicture) {
  EXPECT_THAT(numbers<float>(run_following(kParse, "boxes", kTwo)),
              ElementsAre(2, 4, 10, 12, 30, 0, 40, 10));
  const std::string cropped = std::string(kParse) + ",center_crop:20/20";
  // From 10 to 30: nothing of either is left.
  EXPECT_THAT(numbers<float>(run_following(cropped, "boxes", kTwo)), IsEmpty());
  const std::string wider =
      std::string(kParse) + ",center_crop:20/32,resize:40/64";
  EXPECT_THAT(numbers<float>(run_following(wider, "boxes", kTwo)),
              ElementsAre(0, 8, 12, 24, 52, 0, 64, 20));
  EXPECT_THAT(numbers<std::int64_t>(run_following(wider, "labels", kTwo)),
              ElementsAre(7, 9));
  EXPECT_EQ(run_following(wider, "boxes", kTwo)->spec,
            (TensorSpec{DType::kFloat32, {2, 4}}));
}

TEST(FollowProgramTest, WhatIsTooSmallIsDroppedWithItsLabel) {
  const std::string ops =
      "decode_image:field=image,parse_boxes:boxes:labels=labels:"
      "min_visibility=0.7,center_crop:20/32";
  EXPECT_THAT(numbers<std::int64_t>(run_following(ops, "labels", kTwo)),
              ElementsAre(7));
  EXPECT_THAT(numbers<float>(run_following(ops, "boxes", kTwo)),
              ElementsAre(0, 4, 6, 12));
  EXPECT_THAT(numbers<float>(
                  run_following("decode_image:field=image,parse_boxes", "boxes",
                                "[[5, 5, 5.5, 9], [39.5, 0, 60, 9]]")),
              IsEmpty());
}

TEST(FollowProgramTest, ABoxThatEndsBeforeItBeginsIsABadSample) {
  const std::string image = "decode_image:field=image,";
  for (const auto& [op, says] :
       {std::pair("parse_boxes", "say format=\"xywh\""),
        std::pair("parse_boxes:format=xywh", "ends before it begins")}) {
    const auto made = run_following(image + op, "boxes", "[[30, 20, -5, 6]]");
    ASSERT_FALSE(made) << op;
    EXPECT_EQ(made.error().code(), ErrorCode::kCorrupt);
    EXPECT_THAT(made.error().message(), HasSubstr(says));
    EXPECT_THAT(made.error().message(), HasSubstr("[30, 20, -5, 6]"));
  }
}

TEST(FollowProgramTest, ReadsEveryFormat) {
  const std::string image = "decode_image:field=image,";
  EXPECT_THAT(numbers<float>(run_following(image + "parse_boxes:format=xywh",
                                           "boxes", "[[2, 4, 8, 6]]")),
              ElementsAre(2, 4, 10, 10));
  EXPECT_THAT(numbers<float>(run_following(
                  image + "parse_boxes:format=cxcywh:normalized=true", "boxes",
                  "[[0.5, 0.5, 0.5, 0.5]]")),
              ElementsAre(10, 5, 30, 15));
}

TEST(FollowProgramTest, ATurnedPictureNeedsAWordOfTheUser) {
  const std::string boxes = ",parse_boxes:format=cxcywh:normalized=true";
  const char middle[] = "[[0.5, 0.5, 0.5, 0.5]]";

  EXPECT_THAT(
      numbers<float>(run_following("decode_image:exif_orientation=true" + boxes,
                                   "boxes", middle, 6)),
      ElementsAre(5, 10, 15, 30));
  EXPECT_THAT(
      numbers<float>(run_following(
          "decode_image:exif_orientation=false" + boxes, "boxes", middle, 6)),
      ElementsAre(10, 5, 30, 15));
  const auto unsaid = run_following("decode_image" + boxes, "boxes", middle, 6);
  ASSERT_FALSE(unsaid);
  EXPECT_EQ(unsaid.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(unsaid.error().message(),
              AllOf(HasSubstr("EXIF orientation is 6"), HasSubstr("'boxes'"),
                    HasSubstr("exif_orientation=False")));
}

TEST(FollowProgramTest, KeypointsStayAndSayWhetherTheyAreSeen) {
  const std::string ops =
      "decode_image:field=image,parse_keypoints,center_crop:20/20";
  EXPECT_THAT(
      numbers<float>(run_following(ops, "keypoints", "[[2, 4], [20, 10]]")),
      ElementsAre(-8, 4, 10, 10));
  EXPECT_THAT(numbers<float>(
                  run_following(ops, "keypoints", "[[2, 4, 2], [20, 10, 1]]")),
              ElementsAre(-8, 4, 0, 10, 10, 1));
}

TEST(FollowProgramTest, WhatDoesNotFitIsABadSample) {
  const auto message = [](const char* json) {
    const auto got = run_following(kParse, "boxes", json);
    EXPECT_FALSE(got);
    EXPECT_EQ(got.error().code(), ErrorCode::kCorrupt);
    return got.error().message();
  };
  EXPECT_THAT(message(R"({"boxes": [[1, 2, 3]], "labels": [1]})"),
              HasSubstr("boxes: a box has 3 numbers"));
  EXPECT_THAT(message(R"({"boxes": [[1, 2, 3, 4]], "labels": []})"),
              HasSubstr("1 boxes and 0 labels"));
  EXPECT_THAT(message(R"({"boxes": [[1, 2, 3, 4]], "labels": [0.5]})"),
              HasSubstr("no whole number"));
}

TEST(FollowProgramTest, WhatMovesThePictureMovesItsBoxes) {
  EXPECT_THAT(following_error(std::string(kParse) + ",resize:8:field=image"),
              AllOf(HasSubstr("resize (op 2)"), HasSubstr("'boxes'")));
  EXPECT_THAT(following_error("decode_image:field=image,resize:8,parse_boxes"),
              HasSubstr("put parse_boxes before it"));
  EXPECT_THAT(
      following_error(std::string(kParse) + ",random_crop:8:independent=true"),
      HasSubstr("independent="));
  EXPECT_THAT(following_error("parse_boxes:normalized=true:field=json"),
              HasSubstr("needs the size"));
  EXPECT_EQ(following_error(std::string(kParse) + ",random_crop:8,cast"), "");
}

}  // namespace
}  // namespace leat
