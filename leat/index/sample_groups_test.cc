#include "leat/index/sample_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "leat/dataset/catalogue.h"

namespace leat {
namespace {

using ::testing::HasSubstr;

std::string split(std::string_view name) {
  const auto parts = split_member(name);
  return parts ? parts->key + " | " + parts->field : "none";
}

TEST(SplitMemberTest, CutsAtTheFirstDotOfTheBaseName) {
  EXPECT_EQ(split("0001.jpg"), "0001 | jpg");
  EXPECT_EQ(split("a/b/0001.seg.PNG"), "a/b/0001 | seg.png");
  EXPECT_EQ(split("a.b/0001.jpg"), "a.b/0001 | jpg");
}

TEST(SplitMemberTest, TakesTheOddNamesThatWebDatasetTakes) {
  EXPECT_EQ(split("./0001.jpg"), "./0001 | jpg");
  EXPECT_EQ(split("0001."), "0001 | ");
  EXPECT_EQ(split("0001..jpg"), "0001 | .jpg");
  EXPECT_EQ(split("__meta__.json"), "__meta__ | json");
  EXPECT_EQ(split("___.json"), "___ | json");
  EXPECT_EQ(split("a/__meta__/0001.jpg"), "a/__meta__/0001 | jpg");
}

TEST(SplitMemberTest, PassesOverWhatBelongsToNoSample) {
  EXPECT_EQ(split("README"), "none");
  EXPECT_EQ(split("a.b/README"), "none");
  EXPECT_EQ(split(".hidden"), "none");
  EXPECT_EQ(split("a/._0001.jpg"), "none");
  EXPECT_EQ(split("__meta__.json__"), "none");
  EXPECT_EQ(split("__meta__/shard.json"), "none");
}

Member member(std::string name, std::uint64_t offset) {
  return {.name = std::move(name), .offset = offset, .size_bytes = 10};
}

class SampleGroupsTest : public ::testing::Test {
 protected:
  Result<void> add(const std::vector<Member>& members) {
    const ObjectIndex shard =
        writer_.add_object({.key = "x.tar", .size_bytes = 10'000});
    return groups_.add_shard(shard, "a/x.tar", members);
  }

  Catalogue finish() {
    file_ = *std::move(writer_).finish();
    return *Catalogue::open(file_.span(), nullptr);
  }

  CatalogueWriter writer_{Layout::kShards, EtagKind::kNone};
  SampleGroups groups_{writer_};
  Buffer file_;
};

TEST_F(SampleGroupsTest, MakesSamplesOfConsecutiveMembers) {
  ASSERT_TRUE(add({member("1.jpg", 512), member("1.cls", 1536),
                   member("README", 2048), member("2.jpg", 2560)}));

  const Catalogue catalogue = finish();

  ASSERT_EQ(catalogue.samples(), 2u);
  EXPECT_EQ(catalogue.fields(),
            (std::vector<FieldSpec>{{"jpg", FieldKind::kBytes},
                                    {"cls", FieldKind::kBytes}}));
  EXPECT_EQ(catalogue.key({1}), "2");
  EXPECT_EQ(catalogue.range(1, {0}), (ByteRange{{0}, 1536, 10}));
  EXPECT_TRUE(catalogue.range(1, {1}).is_missing());
}

TEST_F(SampleGroupsTest, NeverJoinsSamplesAcrossShards) {
  ASSERT_TRUE(add({member("1.jpg", 512)}));
  ASSERT_TRUE(add({member("1.jpg", 512), member("1.txt", 1024)}));

  const Catalogue catalogue = finish();

  ASSERT_EQ(catalogue.samples(), 2u);
  EXPECT_EQ(catalogue.range(0, {1}).object, ObjectIndex{1});
  EXPECT_TRUE(catalogue.range(1, {0}).is_missing());
}

TEST_F(SampleGroupsTest, TakesTheFieldsThatAContainerSays) {
  const auto feature = [](std::string record, std::string field) {
    return Member{.name = std::move(record),
                  .offset = 512,
                  .size_bytes = 10,
                  .field = std::move(field)};
  };
  ASSERT_TRUE(add({feature("0", "image/Encoded"), feature("0", "a.b"),
                   feature("1", "a.b")}));

  const Catalogue catalogue = finish();

  ASSERT_EQ(catalogue.samples(), 2u);
  EXPECT_EQ(catalogue.key({1}), "a/x.tar:1");
  EXPECT_EQ(catalogue.fields(),
            (std::vector<FieldSpec>{{"image/Encoded", FieldKind::kBytes},
                                    {"a.b", FieldKind::kBytes}}));
  EXPECT_TRUE(catalogue.range(0, {1}).is_missing());
}

TEST_F(SampleGroupsTest, RefusesAFieldThatComesTwice) {
  const Result<void> added = add({member("1.jpg", 512), member("1.JPG", 1536)});

  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(added.error().message(), HasSubstr("'1.JPG'"));
}

}  // namespace
}  // namespace leat
