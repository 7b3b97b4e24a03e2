#include "leat/bucket/repeat.h"

#include <gtest/gtest.h>

namespace leat {
namespace {

TEST(RepeatTest, OneFileIsManyObjects) {
  const auto repeat = Repeat::parse("data/train/x.bin:1000", "/root");

  ASSERT_TRUE(repeat) << repeat.error().message();
  EXPECT_EQ(repeat->folder(), "/root/data/train");
  EXPECT_EQ(repeat->name(7), "x-00000007.bin");
  EXPECT_EQ(repeat->file_of("/root/data/train/x-00000999.bin"),
            "/root/data/train/x.bin");
}

TEST(RepeatTest, LeavesOtherPathsAlone) {
  const auto repeat = Repeat::parse("data/x.bin:1000", "/root");

  ASSERT_TRUE(repeat);
  for (const char* path :
       {"/root/data/x-00001000.bin", "/root/data/x-0000000a.bin",
        "/root/data/x-+0000001.bin", "/root/data/y-00000001.bin",
        "/root/data/x-00000001.txt", "/root/data/x.bin", ""}) {
    EXPECT_EQ(repeat->file_of(path), path);
  }
}

TEST(RepeatTest, RefusesWhatIsNoFileAndCount) {
  for (const char* text :
       {"", "x.bin:5", "data/x.bin", "data/x.bin:", "data/x.bin:0",
        "data/x.bin:-1", "data/x.bin:1e7", "data/x.bin:100000001", ":5"}) {
    EXPECT_FALSE(Repeat::parse(text, "/root")) << text;
  }
}

}  // namespace
}  // namespace leat
