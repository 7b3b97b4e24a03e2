#include "leat/codec/tar/tar_scanner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "leat/codec/testing/scan.h"
#include "leat/codec/testing/tar_builder.h"

namespace leat {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TarBuilder;

using Scan = testing::MemberScan;

Result<Scan> scan(std::string_view archive) {
  TarScanner scanner(archive.size());
  return testing::scan_all(scanner, archive);
}

std::vector<std::string> names_of(const std::string& archive) {
  const Result<Scan> scanned = scan(archive);
  EXPECT_TRUE(scanned) << scanned.error().message();
  std::vector<std::string> names;
  if (scanned) {
    for (const Member& member : scanned->members) {
      names.push_back(member.name);
    }
  }
  return names;
}

Error tar_error(const std::string& archive) {
  return testing::error_of(scan(archive));
}

std::string text_of(const std::string& archive, const Member& member) {
  return archive.substr(member.offset, member.size_bytes);
}

TEST(TarScannerTest, FindsMembersAndTheirBytes) {
  const std::string archive = TarBuilder()
                                  .add("a/1.jpg", "first")
                                  .add("a/1.cls", "")
                                  .add("a/2.jpg", std::string(1000, 'x'))
                                  .finish();

  const Result<Scan> scanned = scan(archive);

  ASSERT_TRUE(scanned) << scanned.error().message();
  ASSERT_EQ(scanned->members.size(), 3u);
  EXPECT_EQ(scanned->members[0], (Member{"a/1.jpg", 512, 5}));
  EXPECT_EQ(text_of(archive, scanned->members[0]), "first");
  EXPECT_EQ(scanned->members[1].size_bytes, 0u);
  EXPECT_EQ(text_of(archive, scanned->members[2]), std::string(1000, 'x'));
}

TEST(TarScannerTest, JoinsTheUstarPrefix) {
  TarBuilder tar;
  tar.add_header({.name = "name.jpg", .prefix = "a/long/folder"});

  EXPECT_EQ(names_of(tar.finish()),
            std::vector<std::string>{"a/long/folder/name.jpg"});
}

TEST(TarScannerTest, LeavesGnusOtherUseOfThePrefixAlone) {
  TarBuilder tar;
  tar.add_header(
      {.name = "name.jpg", .prefix = "07654321", .magic = "ustar  "});

  EXPECT_EQ(names_of(tar.finish()), std::vector<std::string>{"name.jpg"});
}

TEST(TarScannerTest, ReadsGnuLongNames) {
  const std::string name = std::string(300, 'n') + ".jpg";
  TarBuilder tar;
  tar.add_extended('K', std::string(200, 't') + '\0');
  tar.add_extended('L', name + '\0').add("short", "1").add("next", "2");

  EXPECT_EQ(names_of(tar.finish()), (std::vector<std::string>{name, "next"}));
}

TEST(TarScannerTest, ReadsPaxPathsAndSizes) {
  const std::string name = std::string(300, 'p') + ".jpg";
  TarBuilder tar;
  tar.add_extended('x', TarBuilder::pax_record("mtime", "1.5") +
                            TarBuilder::pax_record("path", name) +
                            TarBuilder::pax_record("size", "3"));
  tar.add_header({.name = "short"}).add_body("abc").add("next", "d");
  const std::string archive = tar.finish();

  const Result<Scan> scanned = scan(archive);

  ASSERT_TRUE(scanned) << scanned.error().message();
  ASSERT_EQ(scanned->members.size(), 2u);
  EXPECT_EQ(scanned->members[0].name, name);
  EXPECT_EQ(text_of(archive, scanned->members[0]), "abc");
  EXPECT_EQ(scanned->members[1].name, "next");
}

TEST(TarScannerTest, AppliesGlobalPaxHeadersToAllThatFollow) {
  TarBuilder tar;
  tar.add_pax("size", "1", 'g');
  tar.add_header({.name = "a"}).add_body("1");
  tar.add_header({.name = "b"}).add_body("2");

  const Result<Scan> scanned = scan(tar.finish());

  ASSERT_TRUE(scanned) << scanned.error().message();
  ASSERT_EQ(scanned->members.size(), 2u);
  EXPECT_EQ(scanned->members[1].size_bytes, 1u);
}

TEST(TarScannerTest, ReadsSizesInBase256) {
  TarBuilder tar;
  tar.add_header(
      {.name = "a",
       .size_field = std::string("\x80", 1) + std::string(10, '\0') + "\x03"});
  tar.add_body("abc");

  const Result<Scan> scanned = scan(tar.finish());

  ASSERT_TRUE(scanned) << scanned.error().message();
  EXPECT_EQ(scanned->members.at(0).size_bytes, 3u);
}

TEST(TarScannerTest, RefusesSizesThatAreNoSizes) {
  const std::string huge = "\x80" + std::string(11, '\xff');
  const std::string negative(12, '\xff');
  const std::string letters = "abcdefghijkl";
  for (const std::string& field : {huge, negative, letters}) {
    TarBuilder tar;
    tar.add_header({.name = "a", .size_field = field});

    EXPECT_EQ(tar_error(tar.finish()).code(), ErrorCode::kCorrupt);
  }
}

TEST(TarScannerTest, RefusesASizeThatWrapsAround) {
  for (const std::string size :
       {"9223372036854775807",  // 2^63 - 1
        "18446744073709551615", "99999999999999999999"}) {
    TarBuilder tar;
    tar.add_pax("size", size).add("a", "");

    EXPECT_EQ(tar_error(tar.finish()).code(), ErrorCode::kCorrupt) << size;
  }
}

TEST(TarScannerTest, PassesOverFoldersAndLinks) {
  TarBuilder tar;
  tar.add_header({.name = "./", .type = '5'});
  tar.add_header({.name = "a/", .type = '5'});
  tar.add_header({.name = "old/"});
  tar.add_header({.name = "hard", .size_bytes = 7, .type = '1'});
  tar.add_header({.name = "soft", .type = '2'});
  tar.add("a/file", "1");

  EXPECT_EQ(names_of(tar.finish()), std::vector<std::string>{"a/file"});
}

TEST(TarScannerTest, LeavesTheDotInFront) {
  TarBuilder tar;
  tar.add("./a/1.jpg", "").add("././/b.jpg", "").add(".hidden", "");

  EXPECT_EQ(names_of(tar.finish()),
            (std::vector<std::string>{"./a/1.jpg", "././/b.jpg", ".hidden"}));
}

TEST(TarScannerTest, RefusesNamesThatPointElsewhere) {
  for (const std::string name :
       {"../up.jpg", "a/../../up.jpg", "a/..", "..", "./../x", "/etc/passwd"}) {
    TarBuilder tar;
    tar.add("good.jpg", "1").add(name, "2");

    const Error error = tar_error(tar.finish());

    EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << name;
    EXPECT_THAT(error.message(), HasSubstr("'" + name + "'"));
    EXPECT_THAT(error.message(), HasSubstr("at byte 1024"));
  }
}

TEST(TarScannerTest, TakesDotsThatAreNoFolders) {
  EXPECT_EQ(names_of(TarBuilder().add("..a/b..c/...", "1").finish()),
            std::vector<std::string>{"..a/b..c/..."});
}

TEST(TarScannerTest, AnyCutBeforeTheEndIsAnError) {
  TarBuilder tar;
  tar.add_pax("path", std::string(600, 'p')).add("short", "body");
  tar.add("b", std::string(600, 'x'));
  const std::string archive = tar.finish();
  // Bytes behind the first block of zeros are padding.
  const std::size_t whole = archive.size() - 512;

  for (std::size_t size = 0; size < archive.size(); ++size) {
    const Result<Scan> cut = scan(std::string_view(archive).substr(0, size));
    if (size == whole) {
      EXPECT_TRUE(cut) << size;
    } else if (size < whole) {
      ASSERT_FALSE(cut) << size;
      EXPECT_EQ(cut.error().code(), ErrorCode::kCorrupt);
      EXPECT_THAT(cut.error().message(), HasSubstr("at byte "));
    }
  }
}

TEST(TarScannerTest, SaysWhereAnArchiveIsCut) {
  const std::string archive =
      TarBuilder().add("a.jpg", std::string(600, 'x')).unfinished();

  const Error error = tar_error(archive.substr(0, 1000));

  EXPECT_THAT(error.message(), HasSubstr("cut short: member 'a.jpg' has 600"));
}

TEST(TarScannerTest, ReportsAHeaderWhoseChecksumIsWrong) {
  std::string archive = TarBuilder().add("a", "1").add("b", "2").finish();
  archive[1024] = 'c';

  const Error error = tar_error(archive);

  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_THAT(error.message(), HasSubstr("at byte 1024"));
}

TEST(TarScannerTest, ReportsArchivesPutOneAfterAnother) {
  const std::string one = TarBuilder().add("a", "1").unfinished();

  const Error error = tar_error(one + std::string(512, '\0') + one);

  EXPECT_THAT(error.message(), HasSubstr("single block of zeros"));
}

TEST(TarScannerTest, SaysThatACompressedArchiveIsCompressed) {
  std::string zipped("\x1f\x8b\x08", 3);
  zipped.resize(2048, 'z');

  const Error error = tar_error(zipped);

  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("gzip"));
}

TEST(TarScannerTest, RefusesSparseMembers) {
  TarBuilder gnu;
  gnu.add_header({.name = "s", .type = 'S'});
  TarBuilder pax;
  pax.add_pax("GNU.sparse.major", "1").add("s", "");

  EXPECT_EQ(tar_error(gnu.finish()).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(tar_error(pax.finish()).code(), ErrorCode::kInvalidArgument);
}

TEST(TarScannerTest, RefusesBrokenPaxRecords) {
  for (const std::string body :
       {"x", "5 a=b", "99 path=a\n", "0 path=a\n", "2 \n", "9 nothing\n",
        "-9 path=a\n", "11 path=abc"}) {
    TarBuilder tar;
    tar.add_extended('x', body).add("a", "");

    EXPECT_EQ(tar_error(tar.finish()).code(), ErrorCode::kCorrupt) << body;
  }
}

TEST(TarScannerTest, RefusesAHeaderTooLargeToHold) {
  TarBuilder tar;
  tar.add_header(
      {.name = "x", .size_bytes = TarScanner::kMostExtended + 1, .type = 'x'});

  EXPECT_EQ(tar_error(tar.finish()).code(), ErrorCode::kCorrupt);
}

TEST(TarScannerTest, TakesAnArchiveWithoutMembers) {
  EXPECT_THAT(names_of(TarBuilder().finish()), IsEmpty());
}

TEST(TarScannerTest, ReadsManySmallMembersInFewPieces) {
  TarBuilder tar;
  constexpr std::size_t kMembers = 5000;  // 1 KiB each with its header.
  for (std::size_t i = 0; i < kMembers; ++i) tar.add(std::to_string(i), "x");

  const Result<Scan> scanned = scan(tar.finish());

  ASSERT_TRUE(scanned) << scanned.error().message();
  EXPECT_EQ(scanned->members.size(), kMembers);
  EXPECT_EQ(scanned->feeds, 5u);
}

TEST(TarScannerTest, SkipsTheBodiesOfLargeMembers) {
  TarBuilder tar;
  const std::string body(3 << 20, 'x');
  constexpr std::size_t kMembers = 20;
  for (std::size_t i = 0; i < kMembers; ++i) tar.add(std::to_string(i), body);

  const Result<Scan> scanned = scan(tar.finish());

  ASSERT_TRUE(scanned) << scanned.error().message();
  EXPECT_EQ(scanned->members.size(), kMembers);
  EXPECT_LT(scanned->bytes_read, 4u << 20);
}

TEST(TarScannerTest, FindsTheSameWhateverThePiecesCut) {
  // Members whose headers fall on, before and after the end of a piece.
  for (std::size_t shift = 0; shift < 6; ++shift) {
    TarBuilder tar;
    tar.add("first", std::string(TarScanner::kPieceBytes - 512 * shift, 'x'));
    tar.add_extended('L', std::string(700, 'l') + '\0').add("short", "1");
    tar.add_pax("path", std::string(400, 'p')).add("short", "2");

    EXPECT_EQ(names_of(tar.finish()),
              (std::vector<std::string>{"first", std::string(700, 'l'),
                                        std::string(400, 'p')}))
        << shift;
  }
}

}  // namespace
}  // namespace leat
