// A chain in two halves delivers what the whole one does, byte for byte.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "leat/base/hash.h"
#include "leat/codec/testing/encode_image.h"
#include "leat/pipeline/ops/image_cut.h"
#include "leat/pipeline/program/cut.h"
#include "leat/pipeline/program/decoded_record.h"
#include "leat/pipeline/program/user_function.h"
#include "leat/pipeline/program/value.h"

namespace leat {
namespace {

using testing::encode_jpeg;
using testing::encode_png;
using testing::encode_webp;
using testing::exif_of;
using testing::picture;

OutputField compiled(std::vector<OpSpec> specs) {
  const auto outputs = compile_ops(specs, {{"jpg", FieldKind::kBytes}});
  EXPECT_TRUE(outputs) << outputs.error().message();
  return outputs->at(0);
}

OutputField compiled(std::string_view ops) {
  const auto specs = parse_ops(ops);
  EXPECT_TRUE(specs) << ops;
  return compiled(*specs);
}

Hash128 name_of(std::string_view ops) {
  return compiled(ops).cut_chain->cut->name();
}

/// The record; none where there is none.
std::optional<Buffer> record_of(const OutputField& field,
                                const std::string& encoded) {
  const Cut& cut = *field.cut_chain->cut;
  const auto bytes = cut.record_bytes_for(as_bytes(encoded));
  EXPECT_TRUE(bytes) << bytes.error().message();
  if (!*bytes) return std::nullopt;
  EXPECT_EQ(**bytes, cut.record_bytes().value_or(**bytes));
  Buffer record(**bytes);
  const ScratchRef scratch = make_scratch();
  RunNotes notes;
  const auto made = cut.make(as_bytes(encoded), *scratch, record.span(), notes);
  if (!made || !*made) return std::nullopt;
  EXPECT_TRUE(cut.can_read(record.span()));
  return record;
}

Buffer run_cut(const Program& program, std::span<const std::byte> input,
               const SampleRandom& random) {
  const ScratchRef scratch = make_scratch();
  const auto spec = program.output_for(input);
  EXPECT_TRUE(spec) << spec.error().message();
  Buffer out(spec->size_bytes());
  RunNotes notes;
  const auto ran = program.run(input, random, *scratch, out.span(), notes);
  EXPECT_TRUE(ran) << ran.error().message();
  return out;
}

struct Encoded {
  std::string name;
  std::string bytes;
};

std::vector<Encoded> pictures() {
  testing::JpegOptions turned;
  turned.exif = exif_of(6);
  testing::JpegOptions fine;
  fine.horizontal_sampling = 1;
  fine.vertical_sampling = 1;
  testing::JpegOptions progressive;
  progressive.is_progressive = true;
  return {{"jpeg", encode_jpeg(picture(201, 157))},
          {"jpeg upright", encode_jpeg(picture(157, 201), turned)},
          {"jpeg 4:4:4", encode_jpeg(picture(97, 131), fine)},
          {"progressive", encode_jpeg(picture(130, 90), progressive)},
          {"grey jpeg", encode_jpeg(picture(91, 75, 1))},
          {"png", encode_png(picture(120, 77))},
          {"png with alpha", encode_png(picture(60, 77, 4))},
          {"webp", encode_webp(picture(99, 66))}};
}

TEST(ImageCutTest, TheRestOfARecordIsTheWholeOfTheBytes) {
  for (const char* ops :
       {"decode_image", "decode_image:layout=HWC",
        "decode_image,normalize:imagenet",
        "decode_image,random_resized_crop:70,random_horizontal_flip,"
        "normalize:imagenet",
        "decode_image,resize:64,random_crop:48",
        "decode_image,resize:64,center_crop:48,normalize:imagenet",
        "decode_image,center_crop:90,random_resized_crop:40/50",
        "decode_image,pad:3,random_horizontal_flip,resize:50/60,cast",
        "decode_image,random_crop:64:padding=8,color_jitter:0.4:contrast=0.4:"
        "saturation=0.4:hue=0.1",
        "decode_image,color_jitter:0.4,resize:40,random_crop:32",
        "decode_image,resize:40/30,random_horizontal_flip,center_crop:20"}) {
    const OutputField field = compiled(ops);
    for (const Encoded& encoded : pictures()) {
      const auto record = record_of(field, encoded.bytes);
      ASSERT_TRUE(record) << ops << encoded.name;
      EXPECT_EQ(*field.program->output_for(as_bytes(encoded.bytes)),
                *field.cut_chain->rest->output_for(record->span()));
      for (std::uint64_t epoch = 0; epoch < 12; ++epoch) {
        const SampleRandom random{.seed = 3, .epoch = epoch, .sample = {17}};
        EXPECT_EQ(
            as_text(run_cut(*field.program, as_bytes(encoded.bytes), random)
                        .span()),
            as_text(
                run_cut(*field.cut_chain->rest, record->span(), random).span()))
            << ops << ", " << encoded.name << ", epoch " << epoch;
      }
    }
  }
}

// A crop that is reduced three times is decoded at half its size, and only the
// draw knows which one is.
TEST(ImageCutTest, APictureThatADrawMayShrinkHasNoRecord) {
  const std::string large = encode_jpeg(picture(120, 100));
  const auto has_record = [&](std::string_view ops,
                              const std::string& encoded) {
    return record_of(compiled(ops), encoded).has_value();
  };

  EXPECT_FALSE(has_record("decode_image,random_resized_crop:32", large));
  EXPECT_FALSE(has_record("decode_image,random_crop:96,resize:32", large));
  EXPECT_TRUE(has_record("decode_image,random_crop:90,resize:32", large));
  EXPECT_TRUE(has_record("decode_image,random_resized_crop:34", large));
  EXPECT_TRUE(has_record("decode_image,random_resized_crop:32",
                         encode_png(picture(120, 100))));
  EXPECT_TRUE(has_record("decode_image,random_resized_crop:32",
                         encode_jpeg(picture(120, 95))));
  // A picture that is always shrunk alike may be kept.
  EXPECT_TRUE(has_record("decode_image,resize:32,random_crop:24", large));
  std::vector<OpSpec> exact = *parse_ops("decode_image,random_resized_crop:32");
  exact[0].params_json = R"({"exact": true})";
  EXPECT_TRUE(record_of(compiled(exact), large));
}

TEST(ImageCutTest, EveryParameterBeforeTheCutIsInTheName) {
  const std::vector<std::string> different = {
      "decode_image",
      "decode_image,resize:64",
      "decode_image,resize:65",
      "decode_image,resize:64/64",
      "decode_image,resize:64:interpolation=bicubic",
      "decode_image,center_crop:64",
      "decode_image,resize:64,center_crop:64",
      "decode_image,center_crop:64,resize:64",
      "decode_image,pad:1",
      "decode_image,pad:2",
      "decode_image,pad:1:fill=7"};
  std::set<std::string> names;
  for (const std::string& ops : different) names.insert(name_of(ops).hex());
  for (const char* decode :
       {R"({"mode": "L"})", R"({"exif_orientation": false})",
        R"({"exact": true})", R"({"max_pixels": 1000000})"}) {
    names.insert(compiled({{.name = "decode_image", .params_json = decode}})
                     .cut_chain->cut->name()
                     .hex());
  }
  names.insert(compiled({{.name = "decode_image"},
                         {.name = "pad", .params_json = R"({"size": 99})"}})
                   .cut_chain->cut->name()
                   .hex());

  EXPECT_EQ(names.size(), different.size() + 5);
}

TEST(ImageCutTest, WhatIsBehindTheCutIsNotInTheName) {
  const Hash128 plain = name_of("decode_image");

  EXPECT_EQ(name_of("decode_image,random_resized_crop:32"), plain);
  EXPECT_EQ(name_of("decode_image,normalize:imagenet"), plain);
  EXPECT_EQ(name_of("decode_image,random_horizontal_flip,resize:32"), plain);
  EXPECT_EQ(name_of("decode_image,color_jitter:0.1"), plain);
  // Neither is its spelling, nor the delivered layout.
  EXPECT_EQ(compiled({{.name = "decode_image",
                       .params_json = R"({"mode": "RGB", "layout": "HWC"})"}})
                .cut_chain->cut->name(),
            plain);
  EXPECT_EQ(name_of("decode_image,random_crop:8,center_crop:4"), plain);
}

// If this fails because the pixels are meant to be others now: raise
// kDecodedVersion, and put the new hash here beside the new version.
TEST(ImageCutTest, TheVersionNamesThePixels) {
  Hasher128 all;
  for (const char* ops :
       {"decode_image,resize:40,pad:2:fill=9",
        "decode_image,resize:33/47:interpolation=lanczos",
        "decode_image,resize:60/50:interpolation=box,center_crop:70",
        "decode_image,resize:33/"
        "47:interpolation=hamming,resize:40:interpolation=bicubic",
        "decode_image,resize:99/98:interpolation=nearest"}) {
    all.update(record_of(compiled(ops), encode_png(picture(120, 77)))->span());
  }

  EXPECT_EQ(fmt::format("{} {}", kDecodedVersion, all.digest().hex()),
            "1 bdc500889298d9434ce39337f3268862");
}

TEST(ImageCutTest, WhatIsDamagedHasNoRecord) {
  std::string damaged = encode_jpeg(picture(200, 160));
  damaged.resize(damaged.size() * 3 / 4);
  damaged += "\xff\xd9";
  const OutputField field = compiled("decode_image,random_resized_crop:90");
  ASSERT_TRUE(field.cut_chain->cut->record_bytes_for(as_bytes(damaged)));

  EXPECT_FALSE(record_of(field, damaged));
}

TEST(ImageCutTest, AChainWithoutAPictureHasNoCut) {
  EXPECT_EQ(compiled("parse_int").cut_chain, nullptr);
  EXPECT_EQ(compiled("parse_text").cut_chain, nullptr);
  EXPECT_EQ(compiled("load_npy").cut_chain, nullptr);
}

/// Answers what it is given, and counts.
class Same final : public UserFunction {
 public:
  Result<Value> call(const FunctionInput& input,
                     const SampleRandom& /*random*/) const override {
    ++calls;
    ArrayValue made{.spec = input.spec, .bytes = Buffer(input.bytes.size())};
    std::ranges::copy(input.bytes, made.bytes.span().begin());
    return Value(std::move(made));
  }
  mutable int calls = 0;
};

TEST(ImageCutTest, AFunctionIsBehindTheCut) {
  const auto same = std::make_shared<const Same>();
  std::vector<OpSpec> specs =
      *parse_ops("decode_image,resize:40,random_crop:32");
  specs.insert(specs.begin() + 2,
               OpSpec{.name = "python", .params_json = "{}", .function = same});
  const OutputField field = compiled(specs);
  EXPECT_EQ(field.cut_chain->cut->name(), name_of("decode_image,resize:40"));
  const std::string encoded = encode_jpeg(picture(90, 70));

  const auto record = record_of(field, encoded);
  ASSERT_TRUE(record);
  EXPECT_EQ(same->calls, 0);
  const SampleRandom random{.seed = 1, .epoch = 2, .sample = {3}};
  const ScratchRef scratch = make_scratch();
  RunNotes notes;
  const auto whole =
      field.value_program->run(as_bytes(encoded), random, *scratch, notes);
  const auto rest =
      field.cut_chain->value_rest->run(record->span(), random, *scratch, notes);

  ASSERT_TRUE(whole && rest);
  EXPECT_EQ(as_text(std::get<ArrayValue>(*whole).bytes.span()),
            as_text(std::get<ArrayValue>(*rest).bytes.span()));
  // Both halves know the sizes that either of them learns.
  EXPECT_EQ(field.value_program->most_bytes(1),
            field.cut_chain->value_rest->most_bytes(1));
}

TEST(DecodedRecordTest, WhatWasWrittenIsRead) {
  for (const TensorSpec& spec :
       {TensorSpec{DType::kUint8, {5, 7, 3}}, TensorSpec{DType::kFloat32, {2}},
        TensorSpec{DType::kInt64, {}}}) {
    Buffer record(record_bytes_of(spec));
    const std::span<std::byte> body = begin_record(spec, record.span());
    ASSERT_EQ(body.size(), spec.size_bytes());

    const auto read = read_record(record.span());

    ASSERT_TRUE(read);
    EXPECT_EQ(read->spec, spec);
    EXPECT_EQ(read->bytes.data(), body.data());
    EXPECT_EQ(read->bytes.size(), body.size());
  }
}

TEST(DecodedRecordTest, NoShapeIsBelievedThatIsNotThatLong) {
  const TensorSpec spec{DType::kUint8, {4, 6, 3}};
  Buffer record(record_bytes_of(spec));
  (void)begin_record(spec, record.span());
  for (std::size_t size = 0; size < record.size(); ++size) {
    EXPECT_FALSE(read_record(record.span().first(size))) << size;
  }
  const std::size_t head = record.size() - spec.size_bytes();
  for (std::size_t bit = 0; bit < 8 * head; ++bit) {
    const std::byte before = record.span()[bit / 8];
    record.span()[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    const auto read = read_record(record.span());
    // A type of the same size is as good; the reader checks it.
    if (read) {
      EXPECT_EQ(bit / 8, 4u) << bit;
      EXPECT_EQ(read->spec.size_bytes(), spec.size_bytes());
    }
    record.span()[bit / 8] = before;
  }
}

TEST(ImageCutTest, ARecordOfAnotherKindIsNotRead) {
  const auto chain = compiled("decode_image").cut_chain;
  const Cut& cut = *chain->cut;
  const auto can_read = [&](const TensorSpec& spec) {
    Buffer record(record_bytes_of(spec));
    (void)begin_record(spec, record.span());
    return cut.can_read(record.span());
  };

  EXPECT_TRUE(can_read({DType::kUint8, {4, 6, 3}}));
  EXPECT_FALSE(can_read({DType::kUint8, {4, 6, 1}}));
  EXPECT_FALSE(can_read({DType::kInt8, {4, 6, 3}}));
  EXPECT_FALSE(can_read({DType::kUint8, {4, 18}}));
  EXPECT_FALSE(can_read({DType::kUint8, {70000, 1, 3}}));
}

}  // namespace
}  // namespace leat
