#include "leat/index/container.h"

#include <gtest/gtest.h>

#include <string_view>

namespace leat {
namespace {

std::string_view kind_of(std::string_view name) {
  const Container* const container = container_of(name);
  return container == nullptr ? "none" : container->ending;
}

TEST(ContainerTest, IsToldByTheEndOfAName) {
  EXPECT_EQ(kind_of("a/0.tar"), ".tar");
  EXPECT_EQ(kind_of("a/0.tfrecord"), ".tfrecord");
  EXPECT_EQ(kind_of("a/0.tfrecords"), ".tfrecord");
  EXPECT_EQ(kind_of("a/0-128.tfrec"), ".tfrecord");
  EXPECT_EQ(kind_of("a/train-00003-of-00016.tfrecord"), ".tfrecord");
  EXPECT_EQ(kind_of("a/tfrecord"), "none");
  EXPECT_EQ(kind_of("a/0.tfrecord.json"), "none");
}

TEST(ContainerTest, TheNumberOfAShardMayStandBehindTfrecord) {
  EXPECT_EQ(kind_of("mnist-train.tfrecord-00000-of-00001"), ".tfrecord");
  EXPECT_EQ(kind_of("x.tfrecords-3-of-16"), ".tfrecord");
  EXPECT_EQ(kind_of("x.tar-00000-of-00001"), "none");
  EXPECT_EQ(kind_of("x.tfrecord-00000-of-"), "none");
  EXPECT_EQ(kind_of("x.tfrecord-00000"), "none");
}

TEST(ContainerTest, WithoutShardNumberLeavesOtherNamesAlone) {
  EXPECT_EQ(without_shard_number("x-00003-of-00016"), "x");
  EXPECT_EQ(without_shard_number("x-00003-of-00016.y"), "x-00003-of-00016.y");
  EXPECT_EQ(without_shard_number("-of-1"), "-of-1");
  EXPECT_EQ(without_shard_number("12"), "12");
  EXPECT_EQ(without_shard_number(""), "");
}

TEST(ContainerTest, CompressedOnesAreTold) {
  EXPECT_TRUE(is_compressed_shard("0.tar.gz"));
  EXPECT_TRUE(is_compressed_shard("0.tfrecord.gz"));
  EXPECT_TRUE(is_compressed_shard("0.tfrecord.gz-00000-of-00002"));
  EXPECT_FALSE(is_compressed_shard("0.tfrecord"));
}

}  // namespace
}  // namespace leat
