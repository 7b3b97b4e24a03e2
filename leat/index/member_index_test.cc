#include "leat/index/member_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace leat {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kShardBytes = 10'240;

std::string why_not(const std::string& text) {
  const auto members = parse_member_index(text, kShardBytes);
  EXPECT_FALSE(members) << text;
  return members ? "" : members.error().message();
}

TEST(MemberIndexTest, ReadsSamplesOfSeveralFields) {
  const auto members = parse_member_index(
      "v1.2 2\n"
      "jpg 512 5 a/1.jpg seg.PNG 1536 600 a/1.seg.PNG\n"
      "jpg 3072 0 2.jpg\n",
      kShardBytes);

  ASSERT_TRUE(members) << members.error().message();
  ASSERT_EQ(members->size(), 3u);
  EXPECT_EQ((*members)[0], (Member{"a/1.jpg", 512, 5}));
  EXPECT_EQ((*members)[1], (Member{"a/1.seg.PNG", 1536, 600}));
  EXPECT_EQ((*members)[2], (Member{"2.jpg", 3072, 0}));
}

TEST(MemberIndexTest, PassesOverWhatIsNoSampleToUs) {
  // wds2idx takes the last letter off a name without a dot.
  const auto members = parse_member_index(
      "v1.2 2\nREADME 512 5 README\njpg 1536 1 1.jpg\n", kShardBytes);

  ASSERT_TRUE(members) << members.error().message();
  ASSERT_EQ(members->size(), 1u);
}

TEST(MemberIndexTest, OtherVersionsHaveNoNames) {
  const auto members = parse_member_index("v1.1 1\njpg 512 5\n", kShardBytes);

  ASSERT_FALSE(members);
  EXPECT_EQ(members.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(members.error().message(), HasSubstr("v1.2"));
}

TEST(MemberIndexTest, RefusesNumbersThatCannotBe) {
  EXPECT_THAT(why_not("v1.2 -1\n"), HasSubstr("line 1"));
  EXPECT_THAT(why_not("v1.2 99999999\n"), HasSubstr("line 1"));
  EXPECT_THAT(why_not("v1.2 18446744073709551616\n"), HasSubstr("line 1"));
  EXPECT_THAT(why_not("v1.2 1 1\njpg 512 5 1.jpg\n"), HasSubstr("line 1"));
}

TEST(MemberIndexTest, RefusesMembersThatLieElsewhere) {
  for (const char* member :
       {"jpg 0 5 1.jpg", "jpg 513 5 1.jpg", "jpg 512 9729 1.jpg",
        "jpg 10752 0 1.jpg", "jpg 18446744073709551104 1 1.jpg",
        "jpg 512 18446744073709551615 1.jpg",
        "jpg 1024 1 1.jpg cls 1024 1 1.cls",
        "jpg 1024 600 1.jpg cls 1536 1 1.cls"}) {
    EXPECT_THAT(why_not(std::string("v1.2 1\n") + member + "\n"),
                HasSubstr("line 2"))
        << member;
  }
}

TEST(MemberIndexTest, RefusesNamesThatCannotBeTold) {
  for (const char* member :
       {"jpg 512 5 a b.jpg", "png 512 5 1.jpg", "jpg 512 5 \\303\\244.jpg",
        "jpg 512 5 /1.jpg", "jpg 512 5 ../1.jpg", "jpg 512 5", "jpg 512 5 ",
        "jpg 512  5 1.jpg", "jpg +512 5 1.jpg", "jpg 512 5x 1.jpg"}) {
    EXPECT_THAT(why_not(std::string("v1.2 1\n") + member + "\n"),
                HasSubstr("line 2"))
        << member;
  }
}

TEST(MemberIndexTest, RefusesMoreOrFewerSamplesThanItSays) {
  EXPECT_THAT(why_not("v1.2 2\njpg 512 5 1.jpg\n"), HasSubstr("missing"));
  EXPECT_THAT(why_not("v1.2 1\n\n"), HasSubstr("missing"));
  EXPECT_THAT(why_not("v1.2 1\njpg 512 5 1.jpg\njpg 1536 5 2.jpg\n"),
              HasSubstr("more"));
  EXPECT_THAT(why_not(""), HasSubstr("v1.2"));
}

}  // namespace
}  // namespace leat
