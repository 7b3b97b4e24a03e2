#include "leat/pipeline/program/program.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "leat/base/buffer.h"
#include "leat/codec/testing/encode_image.h"
#include "leat/pipeline/ops/op.h"
#include "leat/pipeline/ops/portable_kernels.h"
#include "leat/pipeline/program/cut.h"
#include "leat/pipeline/program/value.h"

namespace leat {
namespace {

using ::testing::ElementsAre;
using testing::encode_jpeg;
using testing::encode_png;
using testing::exif_of;
using ::testing::HasSubstr;
using testing::picture;
using testing::Pixels;

const std::vector<FieldSpec> kFields = {{"jpg", FieldKind::kBytes},
                                        {"txt", FieldKind::kBytes},
                                        {"label", FieldKind::kInt64}};

Result<std::vector<OutputField>> compile(
    std::string_view ops, const std::vector<FieldSpec>& fields = kFields) {
  LEAT_TRY(const auto specs, parse_ops(ops));
  return compile_ops(specs, fields);
}

std::string error_of(std::string_view ops) {
  const auto compiled = compile(ops);
  EXPECT_FALSE(compiled) << ops;
  if (compiled) return "";
  EXPECT_EQ(compiled.error().code(), ErrorCode::kInvalidArgument);
  return compiled.error().message();
}

struct Ran {
  TensorSpec spec;
  Buffer bytes;
  RunNotes notes;

  const std::uint8_t* u8() const {
    return reinterpret_cast<const std::uint8_t*>(bytes.data());
  }
  const float* f32() const {
    return reinterpret_cast<const float*>(bytes.data());
  }
  bool operator==(const Ran& other) const {
    return spec == other.spec &&
           std::memcmp(bytes.data(), other.bytes.data(), bytes.size()) == 0;
  }
};

Result<Ran> run(std::string_view ops, const std::string& encoded,
                SampleRandom random = {}) {
  LEAT_TRY(const auto outputs, compile(ops));
  const ScratchRef scratch = make_scratch();
  const Program& program = *outputs[0].program;
  Ran ran;
  LEAT_TRY(ran.spec, program.output_for(as_bytes(encoded)));
  ran.bytes = Buffer(ran.spec.size_bytes());
  LEAT_TRY_VOID(program.run(as_bytes(encoded), random, *scratch,
                            ran.bytes.span(), ran.notes));
  return ran;
}

TEST(CompileOpsTest, PutsTheImageInThePlaceOfItsField) {
  const auto outputs = compile("decode_image,resize:8/8");

  ASSERT_TRUE(outputs) << outputs.error().message();
  ASSERT_EQ(outputs->size(), 3u);
  EXPECT_EQ((*outputs)[0].name, "image");
  EXPECT_EQ((*outputs)[0].program->output(),
            (TensorSpec{DType::kUint8, {3, 8, 8}}));
  EXPECT_EQ((*outputs)[1].name, "txt");
  EXPECT_EQ((*outputs)[1].program, nullptr);
  EXPECT_EQ((*outputs)[2].name, "label");
  EXPECT_EQ((*outputs)[2].source, 2u);
}

TEST(CompileOpsTest, DecodesOneFieldTwice) {
  const auto outputs = compile(
      "decode_image:field=jpg:to=big,decode_image:field=jpg:to=small,"
      "resize:64/64:field=big,resize:8/8:field=small,"
      "normalize:imagenet:field=big");

  ASSERT_TRUE(outputs) << outputs.error().message();
  ASSERT_EQ(outputs->size(), 4u);
  EXPECT_EQ((*outputs)[0].name, "big");
  EXPECT_EQ((*outputs)[0].program->output(),
            (TensorSpec{DType::kFloat32, {3, 64, 64}}));
  EXPECT_EQ((*outputs)[1].name, "small");
  EXPECT_EQ((*outputs)[1].source, 0u);
}

TEST(CompileOpsTest, KnowsTheShapeOnlyIfItIsAlwaysTheSame) {
  EXPECT_FALSE((*compile("decode_image"))[0].program->output());
  EXPECT_FALSE((*compile("decode_image,resize:8"))[0].program->output());
  EXPECT_EQ(
      (*compile("decode_image:L:layout=HWC,resize:9,center_crop:8,cast"))[0]
          .program->output(),
      (TensorSpec{DType::kFloat32, {8, 8, 1}}));
}

TEST(CompileOpsTest, SaysWhatToWriteInstead) {
  EXPECT_THAT(error_of("resise:3"), HasSubstr("there are decode_image"));
  EXPECT_THAT(error_of("decode_image,resize:3:filter=box"),
              HasSubstr("no parameter 'filter'; it has size, interpolation"));
  EXPECT_THAT(error_of("decode_image,resize"), HasSubstr("needs 'size'"));
  EXPECT_THAT(error_of("decode_image,resize:0"), HasSubstr("from 1 to 65535"));
  EXPECT_THAT(error_of("decode_image,resize:8:interpolation=cubic"),
              HasSubstr("nearest, box, bilinear"));
  EXPECT_THAT(error_of("resize:8"), HasSubstr("put decode_image before"));
  EXPECT_THAT(error_of("decode_image:field=label"),
              HasSubstr("number or a text"));
  EXPECT_THAT(error_of("decode_image:field=png"),
              HasSubstr("fields of bytes: jpg, txt"));
  EXPECT_THAT(error_of("decode_image,resize:8:field=txt"),
              HasSubstr("'txt' is no decoded image"));
  EXPECT_THAT(error_of("decode_image:to=label"),
              HasSubstr("two fields would be named 'label'"));
  EXPECT_THAT(error_of("decode_image,normalize:imagenet,resize:8"),
              HasSubstr("put it before the normalize"));
  EXPECT_THAT(error_of("decode_image,normalize:imagenet,normalize:0:std=1"),
              HasSubstr("behind normalize (op 1): leave one of the two out"));
  EXPECT_THAT(error_of("decode_image:mode=L,normalize:imagenet"),
              HasSubstr("3 numbers for 1 channel"));
  EXPECT_THAT(error_of("decode_image,normalize:0.5"), HasSubstr("needs 'std'"));
  EXPECT_THAT(error_of("decode_image,normalize:0.5:std=0"),
              HasSubstr("std of 0"));
  EXPECT_THAT(error_of("decode_image,random_horizontal_flip:1.5"),
              HasSubstr("from 0 to 1"));
  EXPECT_THAT(error_of("decode_image,random_resized_crop:8:scale=0.5"),
              HasSubstr("two numbers"));
  EXPECT_THAT(error_of("decode_image,random_affine:10:scale=1e-16/1"),
              HasSubstr("1e-6 or more"));
  EXPECT_THAT(error_of("decode_image,cast:int8"), HasSubstr("uint8, float32"));
  EXPECT_THAT(error_of("decode_image,resize:8:9"), HasSubstr("needs the name"));
}

TEST(CompileOpsTest, AsksForAFieldIfItCannotTell) {
  const auto outputs =
      compile_ops(*parse_ops("decode_image"),
                  {{"left", FieldKind::kBytes}, {"right", FieldKind::kBytes}});

  ASSERT_FALSE(outputs);
  EXPECT_THAT(outputs.error().message(), HasSubstr("left, right"));
}

TEST(OpsFromJsonTest, ReadsWhatPythonSends) {
  const auto ops = ops_from_json(
      R"([{"name": "resize", "params": {"size": [3, 4]}}, {"name": "cast"}])");

  ASSERT_TRUE(ops);
  ASSERT_EQ(ops->size(), 2u);
  EXPECT_EQ((*ops)[0].params_json, R"({"size":[3,4]})");
  EXPECT_FALSE(ops_from_json("{}"));
  EXPECT_FALSE(ops_from_json("[1]"));
  EXPECT_FALSE(ops_from_json("[{\"name\": \"nope\"}]"));
}

TEST(ProgramTest, LaysPixelsOutAsAsked) {
  const Pixels pixels = picture(5, 4);
  const std::string png = encode_png(pixels);
  const auto chw = run("decode_image", png);
  const auto hwc = run("decode_image:layout=HWC", png);
  const auto flipped = run("decode_image,random_horizontal_flip:1", png);

  ASSERT_TRUE(chw);
  ASSERT_TRUE(hwc);
  ASSERT_TRUE(flipped);
  EXPECT_THAT(chw->spec.shape, ElementsAre(3, 4, 5));
  EXPECT_THAT(hwc->spec.shape, ElementsAre(4, 5, 3));
  for (std::uint32_t y = 0; y < 4; ++y) {
    for (std::uint32_t x = 0; x < 5; ++x) {
      for (std::uint32_t c = 0; c < 3; ++c) {
        const std::uint8_t expected = pixels.at(x, y, c);
        EXPECT_EQ(chw->u8()[(c * 4 + y) * 5 + x], expected);
        EXPECT_EQ(hwc->u8()[(y * 5 + x) * 3 + c], expected);
        EXPECT_EQ(flipped->u8()[(c * 4 + y) * 5 + 4 - x], expected);
      }
    }
  }
}

TEST(ProgramTest, NormalisesInEveryLayout) {
  const Pixels pixels = picture(19, 3);
  const std::string png = encode_png(pixels);
  const std::string rest =
      ",random_horizontal_flip:1,normalize:0.1/0.2/0.3:std=0.4/0.5/0.6";
  const auto chw = run("decode_image" + rest, png);
  const auto hwc = run("decode_image:layout=HWC" + rest, png);

  ASSERT_TRUE(chw) << chw.error().message();
  ASSERT_TRUE(hwc);
  EXPECT_EQ(chw->spec.dtype, DType::kFloat32);
  for (std::uint32_t y = 0; y < 3; ++y) {
    for (std::uint32_t x = 0; x < 19; ++x) {
      for (std::uint32_t c = 0; c < 3; ++c) {
        const double value = pixels.at(18 - x, y, c) / 255.0;
        const double expected = (value - 0.1 * (c + 1)) / (0.4 + 0.1 * c);
        EXPECT_NEAR(chw->f32()[(c * 3 + y) * 19 + x], expected, 1e-6);
        EXPECT_EQ(hwc->f32()[(y * 19 + x) * 3 + c],
                  chw->f32()[(c * 3 + y) * 19 + x]);
      }
    }
  }
}

TEST(ProgramTest, CastsWithAndWithoutScale) {
  const Pixels pixels = picture(4, 4, 1);
  const std::string png = encode_png(pixels);
  const auto scaled = run("decode_image:L,cast", png);
  const auto as_is = run("decode_image:L,cast:float32:scale=false", png);

  ASSERT_TRUE(scaled);
  ASSERT_TRUE(as_is);
  EXPECT_NEAR(scaled->f32()[5], pixels.bytes[5] / 255.0, 1e-7);
  EXPECT_EQ(as_is->f32()[5], pixels.bytes[5]);
}

TEST(CompileOpsTest, GivesPicturesShapesOfTheirOwn) {
  const auto ragged = compile("decode_image:ragged=true,resize:8/8");
  const auto padded =
      compile("decode_image:layout=HWC,normalize:0:std=1,pad_to:multiple=4");

  ASSERT_TRUE(ragged && padded);
  const OutputField& image = (*ragged)[0];
  EXPECT_EQ(image.program, nullptr);
  EXPECT_EQ(image.value_program->joining(), Joining::kShapes);
  EXPECT_TRUE(image.value_program->guesses());
  EXPECT_EQ(image.cut_chain->rest, nullptr);
  EXPECT_EQ(image.cut_chain->value_rest->joining(), Joining::kShapes);
  // The size of such values is known without their bytes: 3 x 8 x 8.
  EXPECT_EQ(image.value_program->most_bytes(1), 192u);
  const PadRule rule = (*padded)[0].value_program->pad_rule();
  EXPECT_EQ((*padded)[0].value_program->joining(), Joining::kPadded);
  EXPECT_EQ(rule.height_at, 0u);
  EXPECT_EQ(rule.multiple, 4);
  EXPECT_TRUE(rule.is_of_pictures);
}

TEST(CompileOpsTest, FillsUpLast) {
  EXPECT_THAT(error_of("decode_image,pad_to,resize:8"),
              HasSubstr("pad_to (op 1) fills up what is delivered"));
  EXPECT_THAT(error_of("decode_image,pad_to:8:multiple=2"),
              HasSubstr("'size' or 'multiple'"));
}

TEST(ProgramTest, GuessesHalfAsMuchAgainAsPicturesNeeded) {
  const auto outputs = compile("decode_image:L:ragged=true");
  ASSERT_TRUE(outputs);
  const ValueProgram& program = *(*outputs)[0].value_program;
  const std::string small = encode_png(picture(10, 10, 1));
  const std::string large = encode_png(picture(30, 10, 1));
  const ScratchRef scratch = make_scratch();
  RunNotes notes;

  EXPECT_EQ(program.most_bytes(7), 7u);
  EXPECT_EQ(program.spec_for(as_bytes(large))->size_bytes(), 300u);
  EXPECT_FALSE(program.spec_for(as_bytes("no picture")));
  for (const std::string& encoded : {small, large}) {
    const auto value = program.run(as_bytes(encoded), {}, *scratch, notes);
    ASSERT_TRUE(value) << value.error().message();
  }
  EXPECT_EQ(program.most_bytes(7), 300u);  // The larger of 100 and 300.
}

TEST(ProgramTest, KeepsSixteenBits) {
  const Pixels pixels = picture(6, 4, 1);
  const std::string png = encode_png(pixels, {.depth = 16});
  const auto kept =
      run("decode_image:I;16,center_crop:2/3,random_horizontal_flip:1", png);
  const auto cut = run("decode_image:L:depth=8", png);
  const auto refused = run("decode_image:L", png);

  ASSERT_TRUE(kept && cut);
  EXPECT_EQ(kept->spec, (TensorSpec{DType::kUint16, {1, 2, 3}}));
  std::uint16_t first = 0;
  std::memcpy(&first, kept->bytes.data(), sizeof first);
  // Rows 1 and 2, columns 2 to 4 (the lower byte is the column), mirrored.
  EXPECT_EQ(first, pixels.at(4, 1, 0) << 8 | 4);
  EXPECT_EQ(cut->u8()[5], pixels.bytes[5]);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.error().message(), HasSubstr("16 bits a channel"));
}

TEST(ProgramTest, TurnsPicturesUpright) {
  // A picture that is stored turned comes out as if stored upright.
  const Pixels upright = picture(21, 13);
  for (std::uint16_t orientation = 1; orientation <= 8; ++orientation) {
    const bool swaps = orientation >= 5;
    Pixels stored{swaps ? 13u : 21u, swaps ? 21u : 13u, 3, {}};
    for (std::uint32_t y = 0; y < stored.height; ++y) {
      for (std::uint32_t x = 0; x < stored.width; ++x) {
        // The place of the stored pixel, by EXIF's table.
        const std::uint32_t a = swaps ? y : x;
        const std::uint32_t b = swaps ? x : y;
        const bool mirrors_x = orientation == 2 || orientation == 3 ||
                               orientation == 6 || orientation == 7;
        const bool mirrors_y = orientation == 3 || orientation == 4 ||
                               orientation == 7 || orientation == 8;
        for (std::uint32_t c = 0; c < 3; ++c) {
          stored.bytes.push_back(
              upright.at(mirrors_x ? 20 - a : a, mirrors_y ? 12 - b : b, c));
        }
      }
    }
    const std::string png = encode_png(stored, {.exif = exif_of(orientation)});
    for (const char* ops : {"decode_image", "decode_image,center_crop:7",
                            "decode_image,resize:6/9,center_crop:4",
                            "decode_image,center_crop:30,resize:10"}) {
      const auto got = run(ops, png);
      const auto expected = run(ops, encode_png(upright));
      ASSERT_TRUE(got) << got.error().message();
      ASSERT_TRUE(expected);
      EXPECT_EQ(*got, *expected) << orientation << " " << ops;
    }
    const auto ignored = run("decode_image:exif_orientation=false", png);
    const auto as_stored = run("decode_image", encode_png(stored));
    ASSERT_TRUE(ignored);
    EXPECT_EQ(*ignored, *as_stored);
  }
}

TEST(ProgramTest, DrawsTheSameOnEveryThreadAndMachine) {
  const std::string jpeg = encode_jpeg(picture(120, 90));
  const char* ops =
      "decode_image,random_resized_crop:32,random_horizontal_flip";
  const SampleRandom random{.seed = 5, .epoch = 6, .sample = {7}};
  const auto first = run(ops, jpeg, random);
  const auto again = run(ops, jpeg, random);
  const auto other = run(ops, jpeg, {.seed = 5, .epoch = 7, .sample = {7}});

  ASSERT_TRUE(first);
  EXPECT_EQ(*first, *again);
  EXPECT_FALSE(*first == *other);
}

/// A resize as plainly as can be, in the order asked for.
std::vector<std::uint8_t> plain_resize(const Pixels& from, PixelSize to,
                                       const char* first) {
  AxisWeights across;
  across.assign({from.width, 0, double(from.width), to.width, 0, to.width,
                 Interpolation::kBilinear});
  AxisWeights down;
  down.assign({from.height, 0, double(from.height), to.height, 0, to.height,
               Interpolation::kBilinear});
  std::vector<std::uint8_t> bytes = from.bytes;
  std::uint32_t width = from.width;
  std::uint32_t height = from.height;
  for (const char* axis = first; *axis != 0; ++axis) {
    std::vector<std::uint8_t> out;
    const std::size_t stride = std::size_t{width} * 3;
    if (*axis == 'x') {
      out.resize(std::size_t{to.width} * 3 * height);
      portable::resize_rows({bytes.data(), stride, height}, 3, across,
                            out.data(), std::size_t{to.width} * 3);
      width = to.width;
    } else {
      out.resize(stride * to.height);
      std::uint8_t* row = out.data();
      for (const auto& target : down.targets()) {
        portable::blend_rows(
            {bytes.data() + target.first * stride, stride, target.count},
            down.quads(target), stride, row);
        row += stride;
      }
      height = to.height;
    }
    bytes = std::move(out);
  }
  return bytes;
}

TEST(ProgramTest, ResizesAlongTheAxisFirstThatPillowResizesFirst) {
  const struct {
    PixelSize from, to;
    const char* order;
  } cases[] = {{{90, 40}, {30, 30}, "xy"}, {{40, 90}, {30, 30}, "yx"},
               {{40, 50}, {35, 40}, "xy"}, {{40, 51}, {35, 40}, "yx"},
               {{20, 300}, {60, 7}, "yx"}, {{20, 20}, {40, 50}, "xy"}};
  for (const auto& [from, to, order] : cases) {
    const Pixels pixels = picture(from.width, from.height);
    const auto got = run(fmt::format("decode_image:layout=HWC,resize:{}/{}",
                                     to.height, to.width),
                         encode_png(pixels));
    ASSERT_TRUE(got) << got.error().message();
    const auto expected = plain_resize(pixels, to, order);
    ASSERT_EQ(got->bytes.size(), expected.size());
    EXPECT_EQ(std::memcmp(got->u8(), expected.data(), expected.size()), 0)
        << from.width << "x" << from.height << " " << order;
  }
}

TEST(ProgramTest, ResizesInStepsAndPads) {
  const std::string png = encode_png(picture(40, 30));
  const auto got =
      run("decode_image,resize:20/20,center_crop:30,resize:8/8", png);

  ASSERT_TRUE(got) << got.error().message();
  EXPECT_THAT(got->spec.shape, ElementsAre(3, 8, 8));
  EXPECT_EQ(got->u8()[0], 0);           // Black all around,
  EXPECT_GT(got->u8()[4 * 8 + 4], 40);  // a picture in the middle.
}

TEST(ProgramTest, SaysThatAnImageIsBad) {
  const std::string jpeg = encode_jpeg(picture(60, 40));
  const auto cut = run("decode_image", jpeg.substr(0, jpeg.size() / 2));
  const auto strip = run("decode_image:max_pixels=10000,resize:200",
                         encode_png(picture(200, 2)));

  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(cut.error().message(), HasSubstr("cut short"));
  ASSERT_FALSE(strip);
  EXPECT_EQ(strip.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(strip.error().message(), HasSubstr("would become 20000 x 200"));
}

TEST(ProgramTest, ScaledDecodingComesCloseToExact) {
  const std::string jpeg = encode_jpeg(picture(640, 480));
  for (const char* rest : {",resize:100/100", ",resize:60",
                           ",random_resized_crop:48:scale=0.5/1"}) {
    const auto fast = run("decode_image" + std::string(rest), jpeg);
    const auto exact = run("decode_image:exact=true" + std::string(rest), jpeg);
    ASSERT_TRUE(fast);
    ASSERT_TRUE(exact);
    double sum = 0;
    for (std::size_t i = 0; i < fast->bytes.size(); ++i) {
      sum += std::abs(int{fast->u8()[i]} - int{exact->u8()[i]});
    }
    EXPECT_GT(sum, 0) << rest;
    EXPECT_LT(sum / static_cast<double>(fast->bytes.size()), 3) << rest;
  }
}

}  // namespace
}  // namespace leat
