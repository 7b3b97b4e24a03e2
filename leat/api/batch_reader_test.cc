#include "leat/api/batch_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/api/loader_options_of.h"

namespace leat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// A folder of five texts, and the user's cache beside it.
class BatchReaderTest : public ::testing::Test {
 protected:
  BatchReaderTest() : folder_(::testing::TempDir() + "batch_reader_test") {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(data());
    for (const char* text : {"a", "b", "c", "d", "e"}) {
      std::ofstream(data() + "/" + text + ".txt") << text;
    }
    // No thread of this test runs yet.
    ::setenv("LEAT_CACHE_DIR", (folder_ + "/cache").c_str(), 1);
  }
  ~BatchReaderTest() override { std::filesystem::remove_all(folder_); }

  std::string data() const { return folder_ + "/data"; }

  BatchReader open(const ReaderOptions& options) const {
    Result<BatchReader> reader = BatchReader::open(data(), options);
    if (!reader) ADD_FAILURE() << reader.error().message();
    return *std::move(reader);
  }

 private:
  const std::string folder_;
};

// The texts of each batch until the epoch ends.
std::vector<std::string> rest_of(BatchReader& reader) {
  std::vector<std::string> batches;
  while (true) {
    Result<std::optional<Batch>> batch = reader.next();
    if (!batch) {
      ADD_FAILURE() << batch.error().message();
      return batches;
    }
    if (!*batch) return batches;
    const auto bytes = (*batch)->fields.at(0).values->bytes();
    batches.emplace_back(reinterpret_cast<const char*>(bytes.data()),
                         bytes.size());
  }
}

std::string texts(const std::vector<std::string>& batches) {
  std::string all;
  for (const std::string& batch : batches) all += batch;
  return all;
}

TEST_F(BatchReaderTest, ReadsEveryEpochInOrder) {
  BatchReader reader = open({.batch_size = 2});
  EXPECT_EQ(reader.length(), 3u);
  EXPECT_EQ(reader.rank(), (Rank{.rank = 0, .world_size = 1}));
  EXPECT_THAT(reader.field_names(), ElementsAre("data"));

  for (int epoch = 0; epoch < 2; ++epoch) {
    ASSERT_TRUE(reader.begin());
    EXPECT_THAT(rest_of(reader), ElementsAre("ab", "cd", "e"));
  }
  ASSERT_EQ(reader.stats().size(), 2u);
  EXPECT_EQ(reader.stats()[1].samples, 5u);
}

TEST_F(BatchReaderTest, AStateGoesOnWhereItWasTaken) {
  const ReaderOptions options{
      .batch_size = 1, .shuffle = ShuffleChoice::kFull, .seed = 3};
  BatchReader first = open(options);
  ASSERT_TRUE(first.begin());
  ASSERT_TRUE(first.next());
  const std::string state = first.state();
  const std::string rest = texts(rest_of(first));
  EXPECT_EQ(rest.size(), 4u);

  BatchReader second = open(options);
  ASSERT_TRUE(second.load_state(state));
  ASSERT_TRUE(second.begin());
  EXPECT_EQ(texts(rest_of(second)), rest);
}

TEST_F(BatchReaderTest, RanksShareAStep) {
  std::vector<std::string> seen;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    BatchReader reader = open({.global_batch_size = 4,
                               .rank = Rank{.rank = rank, .world_size = 2},
                               .drop_last = true});
    ASSERT_TRUE(reader.set_epoch(2));
    ASSERT_TRUE(reader.begin());
    for (std::string& batch : rest_of(reader)) seen.push_back(std::move(batch));
    EXPECT_EQ(reader.stats()[0].epoch, 2u);
  }
  EXPECT_THAT(seen, UnorderedElementsAre("ab", "cd"));
}

TEST_F(BatchReaderTest, WhatCannotBeIsRefused) {
  const auto message = [&](const ReaderOptions& options) -> std::string {
    Result<BatchReader> reader = BatchReader::open(data(), options);
    return reader ? "nothing" : reader.error().message();
  };
  EXPECT_THAT(message({}), HasSubstr("batch_size"));
  EXPECT_THAT(message({.batch_size = 2, .ops = "fly"}), HasSubstr("fly"));
  EXPECT_THAT(message({.batch_size = 2, .fields = {"x"}}), HasSubstr("x"));

  BatchReader reader = open({.batch_size = 2});
  Result<std::optional<Batch>> batch = reader.next();
  ASSERT_FALSE(batch);
  EXPECT_THAT(batch.error().message(), HasSubstr("begin()"));
}

TEST_F(BatchReaderTest, FilesWhoseRowsAreTheSamplesAreRefused) {
  int number = 0;
  const auto message_of = [&](const std::vector<std::string>& names) {
    const std::string folder = data() + "/" + std::to_string(number++);
    std::filesystem::create_directories(folder);
    for (const std::string& name : names) {
      std::ofstream(folder + "/" + name) << "rows";
    }
    Result<BatchReader> reader = BatchReader::open(folder, {.batch_size = 2});
    return reader ? "nothing" : reader.error().message();
  };
  EXPECT_THAT(message_of({"0.parquet", "1.PARQUET"}),
              HasSubstr("has Parquet files, whose samples are their rows"));
  EXPECT_THAT(message_of({"index.json", "shard.00000.mds.zstd"}),
              HasSubstr("has shards of MDS"));
  EXPECT_THAT(message_of({"index.json", "chunk-0-0.bin"}),
              HasSubstr("has chunks of LitData"));
  EXPECT_EQ(message_of({"0.parquet", "0.txt"}), "nothing");
  EXPECT_EQ(message_of({"0.mds"}), "nothing");
  EXPECT_EQ(message_of({"index.json"}), "nothing");
}

TEST(LoaderOptionsOfTest, APatienceThatIsNoneIsRefused) {
  for (const double seconds :
       {std::numeric_limits<double>::infinity(),
        std::numeric_limits<double>::quiet_NaN(), 1e10, -1.0}) {
    ReaderOptions options;
    options.storage.patience_seconds = seconds;
    const Result<LoaderOptions> made = loader_options_of(options);
    ASSERT_FALSE(made) << seconds;
    EXPECT_THAT(made.error().message(), HasSubstr("patience_seconds"));
  }
}

TEST(LoaderOptionsOfTest, EachOptionReachesTheLoader) {
  ReaderOptions options;
  options.batch_size = 3;
  options.global_batch_size = 6;
  options.rank = Rank{.rank = 1, .world_size = 2};
  options.shuffle = ShuffleChoice::kBlock;
  options.seed = 4;
  options.drop_last = false;
  options.pad = true;
  options.join = true;
  options.epochs = 5;
  options.ops = "decode_image,resize:8/8";
  options.fields = {"image"};
  options.ids = true;
  options.substitutes_bad = true;
  options.memory_bytes = 7;
  options.threads = 8;
  options.max_in_flight = 9;
  options.cache = ReaderCache{.ram_bytes = 10,
                              .disk = "folder",
                              .disk_limit_bytes = 11,
                              .is_shared = true};
  options.trace = "trace.json";
  Result<LoaderOptions> made = loader_options_of(options);
  ASSERT_TRUE(made);

  EXPECT_EQ(made->batch_size, 3u);
  EXPECT_EQ(made->global_batch_size, 6u);
  EXPECT_EQ(made->rank, options.rank);
  EXPECT_EQ(made->shuffle, ShuffleChoice::kBlock);
  EXPECT_EQ(made->seed, 4u);
  EXPECT_EQ(made->drop_last, false);
  EXPECT_TRUE(made->pad);
  EXPECT_TRUE(made->join);
  EXPECT_EQ(made->epochs, 5u);
  ASSERT_EQ(made->ops.size(), 2u);
  EXPECT_EQ(made->ops[1].name, "resize");
  EXPECT_THAT(made->fields, ElementsAre("image"));
  EXPECT_TRUE(made->ids);
  EXPECT_EQ(made->on_error, OnError::kSubstitute);
  EXPECT_EQ(made->memory_bytes, 7u);
  EXPECT_EQ(made->threads, 8u);
  EXPECT_EQ(made->max_in_flight, 9u);
  EXPECT_EQ(made->trace, "trace.json");
  ASSERT_TRUE(made->cache);
  EXPECT_FALSE(made->cache->is_auto);
  EXPECT_EQ(made->cache->ram_bytes, 10u);
  EXPECT_EQ(made->cache->disk, "folder");
  EXPECT_EQ(made->cache->disk_limit_bytes, 11u);
  EXPECT_TRUE(made->cache->is_shared);
}

TEST(LoaderOptionsOfTest, EachOptionReachesTheStore) {
  const StoreOptions made = store_options_of({.endpoint_url = "http://a",
                                              .region = "b",
                                              .profile = "c",
                                              .no_sign_request = true,
                                              .requester_pays = true});

  EXPECT_EQ(made.endpoint_url, "http://a");
  EXPECT_EQ(made.option_of_scheme("region"), "b");
  EXPECT_EQ(made.option_of_scheme("profile"), "c");
  EXPECT_TRUE(made.no_sign_request);
  EXPECT_TRUE(made.requester_pays);
}

// 200 TB in one batch, which no process can address. The engine's planner asks
// for them, and an exception would end this process.
TEST_F(BatchReaderTest, ABatchThatTheSystemHasNoMemoryForIsAnError) {
  BatchReader reader = open({.batch_size = 1 << 14,
                             .pad = true,
                             .ops = "decode_image,resize:65535/65535",
                             .memory_bytes = std::uint64_t{1} << 50});
  ASSERT_TRUE(reader.begin());

  const Result<std::optional<Batch>> batch = reader.next();

  ASSERT_FALSE(batch);
  EXPECT_EQ(batch.error().code(), ErrorCode::kResourceExhausted);
  EXPECT_THAT(batch.error().message(), HasSubstr("no more memory"));
}

}  // namespace
}  // namespace leat
