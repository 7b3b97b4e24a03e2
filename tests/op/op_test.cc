// A program with an op of its own is a program like any other: the op works
// before and behind normalize, on images and masks with one draw, in chains and
// in loaders, and messages name it.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/codec/testing/encode_image.h"
#include "leat/pipeline/ops/op_table.h"
#include "leat/pipeline/program/program.h"
#include "leat/pipeline/program/sample_view.h"
#include "tests/loader/world.h"

namespace leat {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr std::uint32_t kWidth = 24;
constexpr std::uint32_t kHeight = 5;
constexpr std::uint64_t kSamples = 40;

const std::vector<FieldSpec> kFields = {{"image", FieldKind::kBytes},
                                        {"mask", FieldKind::kBytes},
                                        {"json", FieldKind::kBytes}};

/// Every column is of one colour, and no two are of the same.
testing::Pixels columns(std::uint32_t channels) {
  testing::Pixels pixels{kWidth, kHeight, channels, {}};
  for (std::uint32_t i = 0; i < kWidth * kHeight; ++i) {
    for (std::uint32_t c = 0; c < channels; ++c) {
      pixels.bytes.push_back(static_cast<std::uint8_t>(10 * (i % kWidth) + c));
    }
  }
  return pixels;
}

class Sample final : public SampleView {
 public:
  std::span<const std::byte> bytes_of(std::size_t column) const override {
    return as_bytes(fields[column]);
  }
  std::span<const std::byte> record_of(std::size_t) const override {
    return {};
  }
  std::vector<std::string> fields = {testing::encode_png(columns(3)),
                                     testing::encode_png(columns(1)), "[]"};
};

Result<std::vector<OutputField>> compile(std::string_view ops) {
  LEAT_TRY(const auto specs, parse_ops(ops));
  return compile_ops(specs, kFields);
}

std::string error_of(std::string_view ops) {
  const auto compiled = compile(ops);
  EXPECT_FALSE(compiled) << ops;
  return compiled ? "" : compiled.error().message();
}

struct Array {
  TensorSpec spec;
  Buffer bytes;

  /// The value in a row of the first channel, or plane, of the array.
  double at(std::uint32_t x, std::uint32_t y) const {
    const bool is_hwc = spec.shape.size() == 3 && spec.shape[2] == 3;
    const std::size_t place = (std::size_t{y} * kWidth + x) * (is_hwc ? 3 : 1);
    const std::byte* item = bytes.data() + place * size_bytes_of(spec.dtype);
    if (spec.dtype == DType::kUint8) return std::to_integer<int>(*item);
    float number;
    std::memcpy(&number, item, sizeof(number));
    return static_cast<double>(number);
  }
};

/// The outputs of the ops for sample `id`, in the order of kFields.
std::vector<Array> run(std::string_view ops, std::uint64_t id) {
  Sample sample;
  const ScratchRef scratch = make_scratch();
  std::vector<Array> arrays;
  for (const OutputField& field : must(compile(ops))) {
    if (field.program == nullptr) continue;
    const auto encoded = as_bytes(sample.fields[field.source]);
    Array array{must(field.program->output_for(encoded)), {}};
    array.bytes = Buffer(array.spec.size_bytes());
    RunNotes notes;
    must(field.program->run({encoded, &sample}, {7, 1, SampleId{id}}, *scratch,
                            array.bytes.span(), notes));
    arrays.push_back(std::move(array));
  }
  return arrays;
}

/// How far `rolled` was moved to the right; none: it is `plain` in no way.
std::optional<std::uint32_t> moved_by(const Array& plain, const Array& rolled) {
  for (std::uint32_t by = 0; by < kWidth; ++by) {
    bool is_so = plain.spec == rolled.spec;
    for (std::uint32_t y = 0; is_so && y < kHeight; ++y) {
      for (std::uint32_t x = 0; is_so && x < kWidth; ++x) {
        is_so = plain.at(x, y) == rolled.at((x + by) % kWidth, y);
      }
    }
    if (is_so) return by;
  }
  return std::nullopt;
}

TEST(OpOfOurOwnTest, WorksAnywhereInTheChain) {
  const std::string decode = "decode_image:field=image";
  const std::string numbers = "normalize:0.5:std=0.25";
  for (const std::string layout : {"CHW", "HWC"}) {
    const std::string begin = decode + ":layout=" + layout + ",";
    const std::string plain = begin + numbers;
    std::set<std::uint32_t> drawn_before;
    std::set<std::uint32_t> drawn_behind;
    for (std::uint64_t id = 0; id < kSamples; ++id) {
      const Array expected = std::move(run(plain, id)[0]);
      const auto before =
          moved_by(expected, run(begin + "roll:9," + numbers, id)[0]);
      const auto behind =
          moved_by(expected, run(begin + numbers + ",roll:9", id)[0]);
      const auto both = moved_by(
          expected, run(begin + "roll:9," + numbers + ",roll:9", id)[0]);
      ASSERT_TRUE(before && behind && both);
      drawn_before.insert(*before);
      drawn_behind.insert(*behind);
    }
    EXPECT_GT(drawn_before.size(), 5u);
    EXPECT_GT(drawn_behind.size(), 5u);
  }
}

TEST(OpOfOurOwnTest, IsMirroredByWhatComesBehindIt) {
  for (const std::string numbers : {"cast", "cast:uint8"}) {
    const std::string begin = "decode_image:field=image," + numbers;
    const std::string mirror = ",random_horizontal_flip:1";
    for (std::uint64_t id = 0; id < kSamples; ++id) {
      const Array rolled = std::move(run(begin + ",roll:9", id)[0]);
      const Array mirrored = std::move(run(begin + ",roll:9" + mirror, id)[0]);
      for (std::uint32_t x = 0; x < kWidth; ++x) {
        ASSERT_EQ(mirrored.at(kWidth - 1 - x, 2), rolled.at(x, 2));
      }
    }
    // Behind a mirror it moves what it sees to the right.
    const Array plain = std::move(run(begin + mirror, 0)[0]);
    for (std::uint64_t id = 0; id < kSamples; ++id) {
      const auto by = moved_by(plain, run(begin + mirror + ",roll:9", id)[0]);
      ASSERT_TRUE(by);
      EXPECT_LT(*by, 10u);
    }
  }
}

TEST(OpOfOurOwnTest, TheFieldsOfASampleShareItsDraw) {
  const std::string plain =
      "decode_image:field=image,decode_mask:field=mask,normalize:0.5:std=0.5";
  std::set<std::uint32_t> drawn;
  std::set<bool> are_equal;
  for (std::uint64_t id = 0; id < kSamples; ++id) {
    const auto expected = run(plain, id);
    const auto rolled = run(plain + ",roll:9", id);
    ASSERT_EQ(rolled.size(), 2u);
    EXPECT_EQ(rolled[0].spec.dtype, DType::kFloat32);
    EXPECT_EQ(rolled[1].spec.dtype, DType::kUint8);
    const auto image = moved_by(expected[0], rolled[0]);
    ASSERT_TRUE(image);
    EXPECT_EQ(image, moved_by(expected[1], rolled[1]));
    drawn.insert(*image);

    const auto apart = run(plain + ",roll:9:independent=true", id);
    are_equal.insert(moved_by(expected[0], apart[0]) ==
                     moved_by(expected[1], apart[1]));
  }
  EXPECT_GT(drawn.size(), 5u);
  EXPECT_TRUE(are_equal.contains(false));
}

TEST(OpOfOurOwnTest, ItsDrawsAreTold) {
  const auto outputs = must(compile("decode_image:field=image,cast,roll:9"));
  Sample sample;
  const std::string drawn = must(outputs[0].program->drawn(
      as_bytes(sample.fields[0]), {7, 1, SampleId{3}}));
  const auto by = moved_by(run("decode_image:field=image,cast", 3)[0],
                           run("decode_image:field=image,cast,roll:9", 3)[0]);
  ASSERT_TRUE(by);
  const std::string moved =
      fmt::format(R"({{"op":2,"name":"roll","by":{}.0}})", *by);
  EXPECT_EQ(drawn, "[" + (*by == 0 ? std::string() : moved) + "]");
}

TEST(OpOfOurOwnTest, ThreadsAndResumeDoNotMatter) {
  World world;
  const auto folder = world.root() / "pictures" / "a";
  std::filesystem::create_directories(folder);
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    std::ofstream(folder / fmt::format("{:02}.png", i), std::ios::binary)
        << testing::encode_png(columns(3));
  }
  const std::string url = (world.root() / "pictures").string();
  const auto load = [&](std::size_t threads, const std::string& ops) {
    LoaderOptions options = usual_options();
    options.ops = must(parse_ops(ops));
    options.threads = threads;
    return must(world.load(url, options));
  };
  const std::string plain = "decode_image,normalize:imagenet";
  const auto one = load(1, plain + ",roll:9");
  const auto four = load(4, plain + ",roll:9");

  const Seen first = must(run_epoch(*one));
  const Seen second = must(run_epoch(*one));
  EXPECT_EQ(must(run_epoch(*four)).stats.content_hash,
            first.stats.content_hash);
  EXPECT_NE(second.stats.content_hash, first.stats.content_hash);
  EXPECT_NE(must(run_epoch(*load(1, plain))).stats.content_hash,
            first.stats.content_hash);

  // From where the second epoch begins, on.
  const auto resumed = load(2, plain + ",roll:9");
  must(resumed->load_state(four->state()));
  EXPECT_EQ(must(run_epoch(*resumed)).stats.content_hash,
            second.stats.content_hash);
}

TEST(OpOfOurOwnTest, WhatCannotBeMeantIsRefused) {
  const std::string decode = "decode_image:field=image,";
  EXPECT_THAT(error_of(decode + "roll"),
              HasSubstr("roll needs 'most': columns, 0 to 1000"));
  EXPECT_THAT(error_of(decode + "roll:-1"),
              HasSubstr("roll most=-1 must be 1 whole numbers from 0 to 1000"));
  EXPECT_THAT(error_of(decode + "roll:1:least=3"),
              HasSubstr("roll has no parameter 'least'; it has most, "
                        "independent, field, to"));
  const std::string_view type =
      "roll (op 2) works on uint8 and float32, and there is float64";
  EXPECT_THAT(error_of(decode + "cast:float64,roll:1"), HasSubstr(type));
  // The array that it gets is the one that is delivered.
  EXPECT_THAT(error_of(decode + "cast:float32,roll:1,cast:float64"),
              HasSubstr(type));
  EXPECT_THAT(error_of(decode + "cast:float32,roll:1,normalize:0.5:std=1"),
              HasSubstr("normalize (op 3) would change what roll put there: "
                        "put it before that"));
  EXPECT_THAT(error_of(decode + "cast:float32,roll:1,resize:8"),
              HasSubstr("resize (op 3) works on pixels: put it before roll"));
  EXPECT_THAT(error_of(decode + "rol:1"),
              AllOf(HasSubstr("there is no op 'rol'"), HasSubstr(", roll")));
}

TEST(OpOfOurOwnTest, BoxesThatCannotFollowItAreRefused) {
  EXPECT_THAT(
      error_of("decode_image:field=image,parse_boxes:field=json,roll:1"),
      HasSubstr("roll (op 2) moves pixels in a way of its own, and "
                "'boxes' cannot follow them"));
  EXPECT_THAT(error_of("decode_image:field=image,decode_mask:field=mask,"
                       "roll:1:field=image"),
              HasSubstr("'mask' of the same sample is not moved with it"));
}

TEST(OpOfOurOwnTest, OneThatReadsBytesIsLikeAnyOther) {
  const auto outputs = must(compile_ops(must(parse_ops("parse_roman:2000")),
                                        {{"x", {}}, {"rom", {}}}));
  ASSERT_EQ(outputs[0].program, nullptr);
  const Program& roman = *outputs[1].program;
  const auto number_of = [&](std::string_view text) -> Result<std::int64_t> {
    std::int64_t number = 0;
    const ScratchRef scratch = make_scratch();
    RunNotes notes;
    LEAT_TRY_VOID(roman.run(as_bytes(text), {7, 0, SampleId{0}}, *scratch,
                            std::as_writable_bytes(std::span(&number, 1)),
                            notes));
    return number;
  };
  EXPECT_EQ(must(number_of("MCMXCIV")), 1994);
  EXPECT_THAT(number_of("MMI").error().message(),
              HasSubstr("rom: 'MMI' is no numeral up to 2000"));
  EXPECT_FALSE(number_of("14"));

  // It reads texts of the catalogue, opens a chain, and messages name it.
  EXPECT_TRUE(compile_ops(must(parse_ops("parse_roman:field=t")),
                          {{"t", FieldKind::kString}}));
  EXPECT_THAT(error_of("parse_roman:0:field=json"),
              HasSubstr("parse_roman most=0 must be a whole number above 0"));
  EXPECT_THAT(error_of("parse_roma"), HasSubstr(", parse_roman"));
  EXPECT_THAT(ops_help(), HasSubstr("  parse_roman[:most]  numerals"));
}

TEST(OpOfOurOwnTest, HelpListsIt) {
  EXPECT_THAT(ops_help(), HasSubstr("  roll[:most]  move all to the right"));
  std::vector<std::string_view> names;
  for (const OpInfo& op : op_table()) names.push_back(op.name);
  EXPECT_THAT(names, Contains("roll"));
}

}  // namespace
}  // namespace leat
