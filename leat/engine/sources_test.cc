#include "leat/engine/sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Texts = std::vector<std::string>;

/// "URL: pattern pattern" of each place; or the error.
Texts places(const Texts& sources) {
  const auto found = places_of(sources, {});
  if (!found) return {found.error().message()};
  Texts told;
  for (const SourcePlace& place : *found) {
    std::string text = place.url + ":";
    for (const std::string& pattern : place.selection.patterns) {
      text += " " + pattern;
    }
    told.push_back(text);
  }
  return told;
}

TEST(SourcesTest, AFolderIsAPlace) {
  for (const std::string url :
       {"s3://b", "s3://b/train", "s3://b/x.tar/", "http://h:80/x-v1.0",
        "/no/such/folder", "no/folder", "https://[::1]:8080/x",
        "http://h/x?signature=1"}) {
    EXPECT_THAT(places({url}), ElementsAre(url + ":"));
    EXPECT_TRUE(is_plain_place(url)) << url;
  }
}

TEST(SourcesTest, APatternLiesBelowTheFolderBeforeItsFirstWildcard) {
  EXPECT_THAT(places({"s3://b/train/*.tar"}),
              ElementsAre("s3://b/train: *.tar"));
  EXPECT_THAT(places({"s3://b/tr*/a/*.jpg"}),
              ElementsAre("s3://b: tr*/a/*.jpg"));
  EXPECT_THAT(places({"s3://b/**"}), ElementsAre("s3://b: **"));
  EXPECT_THAT(places({"*.tar"}), ElementsAre(".: *.tar"));
  EXPECT_THAT(places({"/*.tar"}), ElementsAre("/: *.tar"));
  EXPECT_THAT(places({"s3://b/x/0.tar"}), ElementsAre("s3://b/x: 0.tar"));
  EXPECT_THAT(places({"http://h/x/1.JPG"}), ElementsAre("http://h/x: 1.JPG"));
  EXPECT_FALSE(is_plain_place("s3://b/x/0.tar"));
}

TEST(SourcesTest, WhatBracesNameLiesInTheDeepestFolderOfAll) {
  EXPECT_THAT(places({"s3://b/s/{00..02}.tar"}),
              ElementsAre("s3://b/s: 00.tar 01.tar 02.tar"));
  EXPECT_THAT(places({"s3://b/{cat,dog}/*.jpg"}),
              ElementsAre("s3://b: cat/*.jpg dog/*.jpg"));
  EXPECT_THAT(places({"s3://b/{a/x,a/y}/0.tar"}),
              ElementsAre("s3://b/a: x/0.tar y/0.tar"));
  EXPECT_THAT(places({"s3://b/{2023,2024}"}),
              ElementsAre("s3://b/2023:", "s3://b/2024:"));
  EXPECT_THAT(places({"s3://{a,b}/*.tar"}),
              ElementsAre("s3://a: *.tar", "s3://b: *.tar"));
  EXPECT_THAT(places({"s3://b/{ab,abc}/0.tar"}),
              ElementsAre("s3://b: ab/0.tar abc/0.tar"));
}

TEST(SourcesTest, ShardsOfABucketAreOnePlaceAndOtherSourcesTheirOwn) {
  EXPECT_THAT(places({"s3://b/x/0.tar", "s3://b/y/z/1.tar", "s3://c/2.tar"}),
              ElementsAre("s3://b: x/0.tar y/z/1.tar", "s3://c: 2.tar"));
  EXPECT_THAT(places({"s3://b/x/0.jpg", "s3://b/x/1.jpg", "s3://b/y/1.jpg"}),
              ElementsAre("s3://b/x: 0.jpg 1.jpg", "s3://b/y: 1.jpg"));
  EXPECT_THAT(places({"s3://b/x", "s3://b/y", "s3://b/x/0.tar"}),
              ElementsAre("s3://b/x:", "s3://b/y:", "s3://b/x: 0.tar"));
}

TEST(SourcesTest, WhatIsThereAsItIsWrittenIsNoPattern) {
  const auto root = std::filesystem::path(::testing::TempDir()) / "sources[1]";
  std::filesystem::create_directories(root / "{a,b}");
  std::ofstream(root / "x*.tar") << "x";

  EXPECT_THAT(places({root / "{a,b}"}),
              ElementsAre((root / "{a,b}").string() + ":"));
  EXPECT_THAT(places({root / "x*.tar"}),
              ElementsAre(root.string() + ": x[*].tar"));
  std::filesystem::remove_all(root);
}

TEST(SourcesTest, WhatCannotBeIsSaid) {
  Texts many;
  for (int i = 0; i < 65; ++i) many.push_back("s3://b" + std::to_string(i));

  EXPECT_THAT(places({}), ElementsAre(HasSubstr("no source")));
  EXPECT_THAT(places({"s3://b*/x"}),
              ElementsAre(HasSubstr("wildcard in the bucket's name")));
  EXPECT_THAT(places(many), ElementsAre(HasSubstr("more than 64 places")));
  EXPECT_THAT(places({"s3://b/{0..1000000}.tar"}),
              ElementsAre(HasSubstr("more than 1000000 names")));
}

TEST(SourcesTest, FiltersGoAlong) {
  const Texts sources{"s3://b/x"};

  const auto found = places_of(sources, {.include = {"*.jpg"}});

  ASSERT_TRUE(found);
  EXPECT_EQ(found->front().selection.include, Texts{"*.jpg"});
}

}  // namespace
}  // namespace leat
