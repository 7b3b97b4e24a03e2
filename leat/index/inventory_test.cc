#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/index/gunzip.h"
#include "leat/index/inventory_manifest.h"
#include "leat/index/inventory_rows.h"

namespace leat {
namespace {

using ::testing::HasSubstr;

std::string manifest_of(const std::string& format, const std::string& schema) {
  return fmt::format(
      R"({{"sourceBucket": "data", "fileFormat": "{}", "fileSchema": "{}",
           "files": [{{"key": "x/1.csv.gz", "size": 7, "MD5checksum": ""}}]}})",
      format, schema);
}

TEST(InventoryManifestTest, FindsTheColumnsThatMatter) {
  const auto manifest = parse_inventory_manifest(manifest_of(
      "CSV", "Bucket, Key, VersionId, IsLatest, IsDeleteMarker, Size, ETag"));

  ASSERT_TRUE(manifest) << manifest.error().message();
  EXPECT_EQ(manifest->source_bucket, "data");
  EXPECT_EQ(manifest->columns.count, 7u);
  EXPECT_EQ(manifest->columns.key, 1u);
  EXPECT_EQ(manifest->columns.is_latest, 3u);
  EXPECT_EQ(manifest->columns.size, 5u);
  EXPECT_EQ(manifest->columns.etag, 6u);
  ASSERT_EQ(manifest->files.size(), 1u);
  EXPECT_EQ(manifest->files[0].size_bytes, 7u);
}

TEST(InventoryManifestTest, SaysWhatToSetWhereItCannotBeRead) {
  const auto said = [](const std::string& text) {
    const auto manifest = parse_inventory_manifest(text);
    EXPECT_FALSE(manifest);
    return manifest ? "" : manifest.error().message();
  };
  EXPECT_THAT(said(manifest_of("Parquet", "message s3.inventory")),
              HasSubstr("output format to CSV"));
  EXPECT_THAT(said(manifest_of("ORC", "struct<bucket:string>")),
              HasSubstr("ORC"));
  EXPECT_THAT(said(manifest_of("CSV", "Bucket, Key")), HasSubstr("add Size"));
  EXPECT_THAT(said(manifest_of("CSV", "Bucket, Size")), HasSubstr("no Key"));
  EXPECT_THAT(said("{}"), HasSubstr("missing"));
  EXPECT_THAT(said("[" + std::string(1 << 16, '[')), HasSubstr("JSON"));
}

const InventoryColumns kColumns{.count = 6,
                                .key = 1,
                                .size = 4,
                                .etag = 5,
                                .is_latest = 2,
                                .is_delete_marker = 3};

Result<std::vector<ObjectInfo>> rows_of(std::string_view text,
                                        std::size_t piece = 1 << 20) {
  std::vector<ObjectInfo> objects;
  InventoryRows rows(kColumns, "p/", objects);
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
    LEAT_TRY_VOID(rows.feed(text.substr(0, piece)));
  }
  LEAT_TRY_VOID(rows.finish());
  return objects;
}

TEST(InventoryRowsTest, KeepsTheLatestObjectsBelowThePrefix) {
  const std::string text =
      "\"b\",\"p/a+b%2Bc%C3%A4.jpg\",\"true\",\"false\",\"12\",\"e1\"\r\n"
      "\"b\",\"p/old\",\"false\",\"false\",\"1\",\"e\"\n"
      "\"b\",\"p/gone\",\"true\",\"true\",\"\",\"\"\n"
      "\"b\",\"other/x\",\"true\",\"false\",\"1\",\"e\"\n"
      "b,p/plain,true,false,0,\n"
      "\"b\",\"p/q\"\"uote\",\"true\",\"false\",\"7\",\"e2\"";
  for (const std::size_t piece : {1u, 7u, 1000u}) {
    const auto objects = rows_of(text, piece);

    ASSERT_TRUE(objects) << objects.error().message();
    ASSERT_EQ(objects->size(), 3u);
    EXPECT_EQ((*objects)[0].key, "a b+c\xc3\xa4.jpg");
    EXPECT_EQ((*objects)[0].size_bytes, 12u);
    EXPECT_EQ((*objects)[0].etag, "\"e1\"");
    EXPECT_EQ((*objects)[1].key, "plain");
    EXPECT_EQ((*objects)[1].etag, "");
    EXPECT_EQ((*objects)[2].key, "q\"uote");
  }
}

TEST(InventoryRowsTest, RefusesRowsThatAreNone) {
  for (const std::string& text :
       {std::string("b,p/x,true,false,1\n"), std::string("b,p/x,,,1,e,f\n"),
        std::string("b,p/x,,,many,e\n"), std::string("b,p/x%4,,,1,e\n"),
        std::string("b,p/x%zz,,,1,e\n"), std::string("b,\"p/x,,,1,e\n"),
        std::string("b,\"p\"/x,,,1,e\n"), std::string("b,p/\"x,,,1,e\n"),
        std::string("b,p/x,,,-1,e\n"), std::string(20'000, 'x')}) {
    const auto objects = rows_of("b,p/good,,,1,e\n" + text);

    ASSERT_FALSE(objects) << text.substr(0, 40);
    EXPECT_EQ(objects.error().code(), ErrorCode::kCorrupt);
    EXPECT_THAT(objects.error().message(), HasSubstr("row 2"));
  }
}

TEST(GunzipTest, RefusesWhatIsNoGzipOrIsCutShort) {
  const auto feed = [](std::string_view bytes) -> Result<void> {
    Gunzip gunzip([](std::string_view) -> Result<void> { return {}; });
    LEAT_TRY_VOID(gunzip.feed(as_bytes(bytes)));
    return gunzip.finish();
  };
  EXPECT_FALSE(feed(""));
  EXPECT_FALSE(feed("\x1f\x8b"));
  EXPECT_FALSE(feed("no gzip at all, but text"));
}

}  // namespace
}  // namespace leat
