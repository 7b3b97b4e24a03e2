#include "leat/index/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Names = std::vector<std::string>;

Result<Selected> select(const Names& keys, const Selection& selection = {}) {
  std::vector<ObjectInfo> objects;
  for (const std::string& key : keys) objects.push_back({.key = key});
  return select_objects(std::move(objects), selection);
}

Names taken(const Names& keys, const Selection& selection = {}) {
  const Result<Selected> selected = select(keys, selection);
  if (!selected) return {selected.error().message()};
  Names names;
  for (const ObjectInfo& object : selected->objects) {
    names.push_back(object.key);
  }
  return names;
}

TEST(SelectionTest, ImagesAloneAreTakenWhereTheyAreAtLeastHalf) {
  const Names keys{"README.md",      "cat/.DS_Store", "cat/1.JPG",
                   "cat/labels.csv", "cat/2.png",     "dog/meta.pickle",
                   "dog/3.webp"};

  EXPECT_THAT(taken(keys), ElementsAre("cat/1.JPG", "cat/2.png", "dog/3.webp"));
}

TEST(SelectionTest, WhatIsLeftOutIsCountedAndShown) {
  const Result<Selected> selected =
      select({"README.md", "cat/1.jpg", "cat/2.jpg", "cat/notes.txt"});

  ASSERT_TRUE(selected);
  EXPECT_THAT(selected->left_out, HasSubstr("2 objects are left out, such as "
                                            "'README.md'"));
  EXPECT_THAT(selected->left_out, HasSubstr("extensions=\"*\""));
  EXPECT_THAT(select({"README.md", "cat/1.jpg"})->left_out,
              HasSubstr("'README.md' is left out: "));
  EXPECT_THAT(select({"cat/1.jpg"})->left_out, IsEmpty());
}

TEST(SelectionTest, DocumentsAreLeftOutBesideOtherData) {
  EXPECT_THAT(taken({"LICENSE", "README.md", "a/1.wav", "b/2.wav"}),
              ElementsAre("a/1.wav", "b/2.wav"));
  EXPECT_THAT(taken({"LICENSE", "README.md", "notes.csv", "0.tar"}),
              ElementsAre("0.tar"));
  EXPECT_THAT(taken({"0.tar", "0.jpg"}), ElementsAre("0.tar", "0.jpg"));
  EXPECT_THAT(taken({"a.csv", "b.csv", "c.txt"}),
              ElementsAre("a.csv", "b.csv", "c.txt"));
  EXPECT_THAT(taken({"1", "readme-of-a-sample", "2"}),
              ElementsAre("1", "readme-of-a-sample", "2"));
}

TEST(SelectionTest, ImagesThatNobodyDecodesAreLeftOutBesideOthers) {
  EXPECT_THAT(taken({"a/1.jpg", "a/2.TIF", "a/3.gif", "b/4.heic"}),
              ElementsAre("a/1.jpg", "a/2.TIF"));
  EXPECT_THAT(taken({"a/1.gif", "a/2.gif", "b/3.bmp"}),
              ElementsAre("a/1.gif", "a/2.gif", "b/3.bmp"));
}

TEST(SelectionTest, FiltersSayWhichObjectsCount) {
  const Names keys{"a/1.jpg", "a/x.csv", "b/2.jpg", "b/3.png", "c/d/4.jpg"};

  EXPECT_THAT(taken(keys, {.include = {"*.jpg"}}),
              ElementsAre("a/1.jpg", "b/2.jpg", "c/d/4.jpg"));
  EXPECT_THAT(taken(keys, {.include = {"*.jpg", "a/*.csv"}}),
              ElementsAre("a/1.jpg", "a/x.csv", "b/2.jpg", "c/d/4.jpg"));
  EXPECT_THAT(taken(keys, {.include = {"a/**"}}), ElementsAre("a/1.jpg"));
  EXPECT_THAT(taken(keys, {.exclude = {"b/*"}}),
              ElementsAre("a/1.jpg", "c/d/4.jpg"));
  EXPECT_THAT(taken(keys, {.extensions = {"PNG", ".csv"}}),
              ElementsAre("a/x.csv", "b/3.png"));
  EXPECT_THAT(taken(keys, {.extensions = {"*"}}), ::testing::SizeIs(5));
  EXPECT_THAT(
      taken({"x.tfrecord-0-of-2", "x.txt"}, {.extensions = {"tfrecord"}}),
      ElementsAre("x.tfrecord-0-of-2"));
  EXPECT_THAT(taken(keys, {.include = {"*.gif"}}),
              ElementsAre(HasSubstr("none of the 5 objects")));
}

TEST(SelectionTest, EachPatternOfASourceIsMet) {
  const Names keys{"0.tar", "1.tar", "x/2.tar"};

  EXPECT_THAT(taken(keys, {.patterns = {"1.tar", "0.tar"}}),
              ElementsAre("0.tar", "1.tar"));
  EXPECT_THAT(taken(keys, {.patterns = {"?.tar", "0*"}}),
              ElementsAre("0.tar", "1.tar"));
  EXPECT_THAT(taken(keys, {.patterns = {"0.tar", "9.tar"}}),
              ElementsAre("there is no object '9.tar'"));
  EXPECT_THAT(taken(keys, {.patterns = {"0.tar", "*.zip"}}),
              ElementsAre("there is no object '*.zip'"));
}

TEST(SelectionTest, APartOfAListingNeedsToMeetNothing) {
  const std::vector<ObjectInfo> part{{.key = "0.tar"}, {.key = "README.md"}};
  const auto count = [&](const Selection& selection) {
    return select_some(part, selection).size();
  };

  EXPECT_EQ(count({}), 1u);
  EXPECT_EQ(count({.extensions = {"*"}}), 2u);
  EXPECT_EQ(count({.patterns = {"0.tar", "7.tar"}}), 1u);
  EXPECT_EQ(count({.patterns = {"x/*.tar"}}), 0u);
}

TEST(SelectionTest, HiddenObjectsNeverCount) {
  EXPECT_THAT(taken({".x", "a/.y", "a/"}, {.extensions = {"*"}}),
              ElementsAre(HasSubstr("there are no objects")));
}

TEST(SelectionTest, ItsTextTellsSelectionsApart) {
  const Selection usual;
  const Selection one{.include = {"a", "b"}};
  const Selection other{.include = {"a"}, .exclude = {"b"}};
  const Selection joined{.include = {"a1 b"}};

  EXPECT_TRUE(usual.is_usual());
  EXPECT_FALSE(one.is_usual());
  EXPECT_NE(one.text(), other.text());
  EXPECT_NE(one.text(), joined.text());
  EXPECT_EQ(one.text(), (Selection{.include = {"a", "b"}}).text());
}

TEST(SelectionTest, NamesAreAskedForWhereNothingHasToBeListed) {
  EXPECT_THAT((Selection{.patterns = {"a", "b"}}).names(),
              ElementsAre("a", "b"));
  EXPECT_THAT((Selection{.patterns = {"a", "b*"}}).names(), IsEmpty());
}

TEST(SelectionTest, FilesAreToldFromFoldersByTheirEnds) {
  EXPECT_TRUE(is_named_as_file("a/0000.tar"));
  EXPECT_TRUE(is_named_as_file("a/X.JPG"));
  EXPECT_TRUE(is_named_as_file("a/sim.h5"));
  EXPECT_FALSE(is_named_as_file("a/imagenet-v1.0"));
  EXPECT_FALSE(is_named_as_file("a/train"));
}

}  // namespace
}  // namespace leat
