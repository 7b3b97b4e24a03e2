// Tests for every store that writes, and for the refusals of the others.

#include "leat/store/testing/conformance_themes.h"

namespace leat::testing {

void join_writes() {}

TEST_P(StoreConformanceTest, WritesWhatIsReadBack) {
  open({{"old", "before"}});
  if (!store().traits().can_write) GTEST_SKIP() << "cannot write";
  const std::string bytes = patterned(200'000, 2);

  const auto written = store().write("new/folder/object", as_bytes(bytes), {});
  const auto replaced = store().write("old", as_bytes("after!!"), {});
  const auto emptied = store().write("empty", {}, {});

  ASSERT_OK(written);
  EXPECT_EQ(written->key, "new/folder/object");
  EXPECT_EQ(written->size_bytes, bytes.size());
  const auto back = read({.key = "new/folder/object", .etag = written->etag}, 0,
                         bytes.size());
  ASSERT_OK(back);
  EXPECT_TRUE(*back == bytes);
  ASSERT_OK(replaced);
  const auto old = read({.key = "old", .etag = replaced->etag}, 0, 7);
  ASSERT_OK(old);
  EXPECT_EQ(*old, "after!!");
  ASSERT_OK(emptied);
  EXPECT_EQ(emptied->size_bytes, 0u);
}

TEST_P(StoreConformanceTest, TellsAReplacedObjectFromTheOldOne) {
  open({{"object", "before"}});
  if (!store().traits().can_write || !store().traits().has_etags) {
    GTEST_SKIP() << "cannot write, or has no ETags";
  }
  const auto before = store().stat("object", {});
  ASSERT_OK(before);

  const auto after = store().write("object", as_bytes("afters"), {});

  ASSERT_OK(after);
  EXPECT_NE(after->etag, before->etag);
  EXPECT_ERROR(read({.key = "object", .etag = before->etag}, 0, 6),
               ErrorCode::kCorrupt);
}

TEST_P(StoreConformanceTest, SaysWhatItCannotDo) {
  open({{"a", "x"}});

  if (!store().traits().can_list) {
    EXPECT_ERROR(store().list({}, {}), ErrorCode::kInvalidArgument);
  }
  if (!store().traits().can_write) {
    EXPECT_ERROR(store().write("b", as_bytes("x"), {}),
                 ErrorCode::kInvalidArgument);
  }
}

}  // namespace leat::testing
