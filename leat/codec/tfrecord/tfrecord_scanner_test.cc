#include "leat/codec/tfrecord/tfrecord_scanner.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/codec/testing/scan.h"
#include "leat/codec/testing/tfrecord_builder.h"

namespace leat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace testing;  // NOLINT: the builders of messages.

using Scan = MemberScan;

Result<Scan> scan(std::string_view file) {
  TfrecordScanner scanner(file.size());
  return scan_all(scanner, file);
}

/// "record field=bytes" of each member.
std::vector<std::string> members_of(const std::string& file) {
  const Result<Scan> scanned = scan(file);
  EXPECT_TRUE(scanned) << scanned.error().message();
  std::vector<std::string> told;
  if (!scanned) return told;
  for (const Member& member : scanned->members) {
    told.push_back(fmt::format("{} {}={}", member.name, member.field,
                               file.substr(member.offset, member.size_bytes)));
  }
  return told;
}

Error error_of(const std::string& file) {
  return testing::error_of(scan(file));
}

std::string cat_and_dog() {
  return tfrecord(ExampleBuilder()
                      .add("image", bytes_feature({"a cat"}))
                      .add("label", int64_feature({3}))
                      .finish()) +
         tfrecord(ExampleBuilder()
                      .add("label", int64_feature({4}))
                      .add("image", bytes_feature({"a dog"}))
                      .finish());
}

TEST(TfrecordScannerTest, HasTheCrcOfTheFormat) {
  // The CRC of the length 0, as TensorFlow writes it.
  EXPECT_EQ(tfrecord_crc(as_bytes(std::string(8, '\0'))), 0x07980329U);
}

TEST(TfrecordScannerTest, FindsFeaturesAndTheirBytes) {
  EXPECT_THAT(members_of(cat_and_dog()),
              ElementsAre("0 image=a cat", "0 label=" + int64_feature({3}),
                          "1 label=" + int64_feature({4}), "1 image=a dog"));
}

TEST(TfrecordScannerTest, ReadsEachByteOnce) {
  const std::string file = cat_and_dog();

  EXPECT_EQ(scan(file)->bytes_read, file.size());
  EXPECT_THAT(members_of(""), IsEmpty());
}

TEST(TfrecordScannerTest, TellsListsByTheWholeFeature) {
  const std::string none = bytes_feature({});
  const std::string two = bytes_feature({"x", ""});
  const std::string floats = float_feature({1.5F, 2.5F});
  const std::string file = tfrecord(ExampleBuilder()
                                        .add("none", none)
                                        .add("two", two)
                                        .add("empty", bytes_feature({""}))
                                        .add("floats", floats)
                                        .add("no floats", float_feature({}))
                                        .finish());

  EXPECT_THAT(members_of(file),
              ElementsAre("0 none[]=" + none, "0 two[]=" + two,
                          "0 empty=", "0 floats=" + floats,
                          "0 no floats=" + float_feature({})));
}

TEST(TfrecordScannerTest, KeepsNamesAsTheyAre) {
  const std::string file =
      tfrecord(ExampleBuilder()
                   .add("image/Encoded", bytes_feature({"1"}))
                   .add("größe.x", bytes_feature({"2"}))
                   .finish());

  EXPECT_THAT(members_of(file),
              ElementsAre("0 image/Encoded=1", "0 größe.x=2"));
}

TEST(TfrecordScannerTest, AFeatureWithoutAListIsNotThere) {
  const std::string file = tfrecord(
      ExampleBuilder().add("x", "").add("y", bytes_feature({"1"})).finish());

  EXPECT_THAT(members_of(file), ElementsAre("0 y=1"));
}

TEST(TfrecordScannerTest, TakesAValueBeforeItsName) {
  const std::string entry =
      wire_field(2, bytes_feature({"1"})) + wire_field(1, "x");

  EXPECT_THAT(members_of(tfrecord(wire_field(1, wire_field(1, entry)))),
              ElementsAre("0 x=1"));
}

TEST(TfrecordScannerTest, OtherRecordsAreOneFieldEach) {
  // The last one would be an Example; the first decides.
  const std::string last = ExampleBuilder().add("x", "").finish();

  EXPECT_THAT(
      members_of(tfrecord("") + tfrecord("text") + tfrecord(last)),
      ElementsAre("0 tfrecord=", "1 tfrecord=text", "2 tfrecord=" + last));
  // A SequenceExample has a second field.
  const std::string sequence =
      ExampleBuilder().add("x", bytes_feature({"1"})).finish() +
      wire_field(2, "");
  EXPECT_THAT(members_of(tfrecord(sequence)),
              ElementsAre("0 tfrecord=" + sequence));
}

TEST(TfrecordScannerTest, AnExampleWithoutFeaturesIsASample) {
  const std::string empty = ExampleBuilder().finish();

  EXPECT_THAT(members_of(cat_and_dog() + tfrecord(empty) + tfrecord("")),
              ::testing::Contains("2 tfrecord=" + empty));
}

TEST(TfrecordScannerTest, RefusesAnotherRecordAmongExamples) {
  const Error error = error_of(cat_and_dog() + tfrecord("text"));

  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_THAT(error.message(), HasSubstr("record 2: no tf.train.Example"));
}

TEST(TfrecordScannerTest, RefusesAFeatureThatChangesItsKind) {
  const std::string file =
      cat_and_dog() +
      tfrecord(ExampleBuilder().add("label", bytes_feature({"cat"})).finish());

  EXPECT_THAT(error_of(file).message(),
              HasSubstr("record 2: feature 'label' is of kind bytes_list, and "
                        "of kind int64_list before"));
}

TEST(TfrecordScannerTest, RefusesWhatNoExampleHas) {
  const std::string first = cat_and_dog();
  const auto refused = [&](const std::string& entry) {
    return error_of(first + tfrecord(wire_field(1, wire_field(1, entry))))
        .message();
  };
  const std::string name = wire_field(1, "x");
  const std::string value = wire_field(2, bytes_feature({"1"}));

  EXPECT_THAT(refused(name + name + value), HasSubstr("or its second"));
  EXPECT_THAT(refused(name + value + value), HasSubstr("no Example has"));
  EXPECT_THAT(refused(value), HasSubstr("without a name"));
  EXPECT_THAT(refused(wire_field(1, "") + value), HasSubstr("of 0 bytes"));
  EXPECT_THAT(refused(wire_field(1, std::string(1025, 'n')) + value),
              HasSubstr("of 1025 bytes"));
  EXPECT_THAT(refused(wire_field(1, "\xff") + value), HasSubstr("no UTF-8"));
  EXPECT_THAT(
      refused(name + wire_field(2, bytes_feature({"1"}) + int64_feature({1}))),
      HasSubstr("second list"));
  EXPECT_THAT(refused(name + wire_field(2, wire_field(4, ""))),
              HasSubstr("another kind"));
  EXPECT_THAT(refused(name + "\x10\x05"), HasSubstr("of a type"));
  EXPECT_THAT(refused(name + "\x12\x7f"), HasSubstr("behind the end"));
  EXPECT_THAT(refused(name + "\x12"), HasSubstr("cut short"));
  EXPECT_THAT(refused(name + "\x12" + std::string(11, '\x80')),
              HasSubstr("cut short"));
}

TEST(TfrecordScannerTest, BoundsTheNumberOfFeatures) {
  ExampleBuilder many;
  for (std::size_t i = 0; i <= ExampleWalk::kMostFeatures; ++i) {
    many.add(std::to_string(i), bytes_feature({""}));
  }
  EXPECT_THAT(error_of(cat_and_dog() + tfrecord(many.finish())).message(),
              HasSubstr("more than 4096 features"));

  std::string file;
  for (std::size_t i = 0; i <= TfrecordScanner::kMostNames; ++i) {
    file += tfrecord(
        ExampleBuilder().add(std::to_string(i), bytes_feature({""})).finish());
  }
  const Error error = error_of(file);
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("more than 4096 features"));
}

TEST(TfrecordScannerTest, RefusesEveryCutButThoseBetweenRecords) {
  const std::string file = cat_and_dog();
  const std::size_t between =
      tfrecord(ExampleBuilder()
                   .add("image", bytes_feature({"a cat"}))
                   .add("label", int64_feature({3}))
                   .finish())
          .size();
  for (std::size_t size = 1; size < file.size(); ++size) {
    if (size == between) continue;
    const Error error = error_of(file.substr(0, size));
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << size;
    EXPECT_THAT(error.message(), HasSubstr("cut short")) << size;
  }
}

TEST(TfrecordScannerTest, RefusesEveryFlippedBit) {
  const std::string file = cat_and_dog();
  for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
    std::string bad = file;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    const Error error = error_of(bad);
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << bit;
    EXPECT_THAT(error.message(), HasSubstr("CRC")) << bit;
  }
}

TEST(TfrecordScannerTest, RefusesALengthThatWrapsAround) {
  std::string head = little_endian(~std::uint64_t{0} - 8);
  head += little_endian(tfrecord_crc(as_bytes(head)));

  EXPECT_THAT(error_of(head + std::string(100, 'x')).message(),
              HasSubstr("cut short"));
}

TEST(TfrecordScannerTest, NamesCompression) {
  for (const auto& [bytes, name] :
       {std::pair("\x1f\x8b\x08rest of a file", "gzip"),
        std::pair("\x78\x9crest of a file", "zlib"),
        std::pair("\x78\x01", "zlib")}) {
    const Error error = error_of(bytes);

    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.message(), HasSubstr(name));
  }
  EXPECT_THAT(error_of("this is a text and no TFRecord").message(),
              HasSubstr("or no TFRecord"));
}

TEST(TfrecordScannerTest, ReadsRecordsLargerThanAPiece) {
  const std::string file =
      tfrecord(ExampleBuilder()
                   .add("large", bytes_feature({std::string(
                                     3 * TfrecordScanner::kPieceBytes, 'x')}))
                   .finish()) +
      cat_and_dog();

  const Result<Scan> scanned = scan(file);

  ASSERT_TRUE(scanned) << scanned.error().message();
  ASSERT_EQ(scanned->members.size(), 5u);
  EXPECT_EQ(scanned->members[0].size_bytes, 3 * TfrecordScanner::kPieceBytes);
  EXPECT_EQ(scanned->bytes_read, file.size());
}

TEST(TfrecordScannerTest, APieceMayEndAnywhere) {
  const std::string rest = "the rest";
  const auto file_of = [&](std::size_t value_bytes) {
    return tfrecord(
        ExampleBuilder()
            .add("large", bytes_feature({std::string(value_bytes, 'x')}))
            .add("a name", int64_feature({7, 8}))
            .add("last", bytes_feature({rest}))
            .finish());
  };
  // The first piece ends from 10 bytes before the second name on.
  const std::size_t most = TfrecordScanner::kPieceBytes - 1;
  const std::size_t name_at = file_of(most).find("a name");
  for (std::size_t more = 0; more < 60; ++more) {
    const std::string file =
        file_of(most + 10 - (name_at - TfrecordScanner::kPieceBytes) - more);
    ASSERT_EQ(file.find("a name"), TfrecordScanner::kPieceBytes + 10 - more);

    const Result<Scan> scanned = scan(file);

    ASSERT_TRUE(scanned) << scanned.error().message();
    ASSERT_EQ(scanned->members.size(), 3u) << more;
    const Member& last = scanned->members[2];
    EXPECT_EQ(file.substr(last.offset, last.size_bytes), rest) << more;
    EXPECT_LE(scanned->bytes_read, file.size() + 60) << more;
  }
}

TEST(ExampleWalkTest, DoesNotDependOnHowItsBytesCome) {
  const std::string example = ExampleBuilder()
                                  .add("a", bytes_feature({"1", "22"}))
                                  .add("bc", int64_feature({1, 300}))
                                  .add("d", "")
                                  .add("e", bytes_feature({"value"}))
                                  .finish();
  for (std::size_t step = 1; step <= example.size(); ++step) {
    ExampleWalk walk;
    walk.start(1000, 1000 + example.size());
    std::size_t done = 0;
    for (std::size_t there = step; done < example.size(); there += step) {
      there = std::min(there, example.size());
      const auto walked =
          walk.walk(as_bytes(example).subspan(done, there - done));
      ASSERT_TRUE(walked) << walked.error().message();
      done += *walked;
    }

    ASSERT_EQ(walk.features().size(), 3u) << step;
    EXPECT_EQ(walk.features()[0].values, 2u);
    EXPECT_EQ(walk.features()[1].name, "bc");
    const FilePart& value = walk.features()[2].value;
    EXPECT_EQ(example.substr(value.offset - 1000, value.size_bytes), "value");
  }
}

}  // namespace
}  // namespace leat
