#include "leat/index/shard_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ShardListTest, ReadsWhatWidsWrites) {
  const auto list = parse_shard_list(R"({
    "__kind__": "wids-shard-index-v1", "wids_version": 1, "name": "x",
    "shardlist": [{"url": "s3://b/x/0.tar", "md5sum": "", "nsamples": 3,
                   "filesize": 10240},
                  {"url": "1.tar", "nsamples": 4, "filesize": 20480}]})");

  ASSERT_TRUE(list) << list.error().message();
  ASSERT_TRUE(*list);
  ASSERT_EQ((*list)->size(), 2u);
  EXPECT_EQ((**list)[0].name, "0.tar");
  EXPECT_EQ((**list)[0].samples, 3u);
  EXPECT_EQ((**list)[1].size_bytes, 20480u);
}

TEST(ShardListTest, OtherFilesAreNoList) {
  for (const std::string text :
       {"", "{", "[]", "3", "{\"shardlist\": []}", "\xff\xfe", "{\"a\": 1}"}) {
    const auto list = parse_shard_list(text);
    ASSERT_TRUE(list) << text;
    EXPECT_FALSE(*list) << text;
  }
  EXPECT_FALSE(*parse_shard_list(std::string(1 << 20, '[')));
}

TEST(ShardListTest, RefusesBrokenLists) {
  for (const char* text :
       {R"({"wids_version": 2, "shardlist": []})", R"({"wids_version": 1})",
        R"({"wids_version": 1, "shardlist": {}})",
        R"({"wids_version": 1, "shardlist": [3]})",
        R"({"wids_version": 1, "shardlist": [{"url": "0.tar"}]})",
        R"({"wids_version": 1, "shardlist":
            [{"url": 7, "nsamples": 1, "filesize": 1}]})",
        R"({"wids_version": 1, "shardlist":
            [{"url": "a", "nsamples": -1, "filesize": 1}]})",
        R"({"wids_version": 1, "shardlist":
            [{"url": "a", "nsamples": 1.5, "filesize": 1}]})"}) {
    const auto list = parse_shard_list(text);
    ASSERT_FALSE(list) << text;
    EXPECT_EQ(list.error().code(), ErrorCode::kCorrupt);
  }
}

TEST(ShardListTest, SaysHowItDiffersFromTheShards) {
  const std::vector<ListedShard> list = {
      {.name = "0.tar", .size_bytes = 10, .samples = 1},
      {.name = "1.tar", .size_bytes = 20, .samples = 2}};
  const std::vector<ObjectInfo> shards = {{.key = "x/0.tar", .size_bytes = 10},
                                          {.key = "x/1.tar", .size_bytes = 20}};
  const auto said = [&](std::vector<ObjectInfo> there,
                        std::vector<std::uint64_t> samples) {
    return differences(list, there, samples);
  };

  EXPECT_THAT(said(shards, {1, 2}), IsEmpty());
  EXPECT_THAT(said(shards, {1, 3}), HasSubstr("'x/1.tar' has 3 samples"));
  EXPECT_THAT(said({shards[0]}, {1}), HasSubstr("names 2 shards"));
  EXPECT_THAT(said({shards[0], {.key = "x/1.tar", .size_bytes = 9}}, {1, 2}),
              HasSubstr("'x/1.tar' has 9 bytes, not 20"));
  EXPECT_THAT(said({shards[0], {.key = "x/2.tar", .size_bytes = 9}}, {1, 2}),
              HasSubstr("'x/2.tar' is not in it"));
}

}  // namespace
}  // namespace leat
