#include "leat/store/hub/replies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

namespace leat {
namespace {

using ::testing::HasSubstr;

std::string file(std::string_view path, std::string_view size = "1",
                 std::string_view oid = "ab12") {
  return R"({"type":"file","path":")" + std::string(path) + R"(","size":)" +
         std::string(size) + R"(,"oid":")" + std::string(oid) + R"("})";
}

TEST(HubTreeTest, ReadsFilesFoldersAndTheCursor) {
  const auto page = parse_hub_tree(
      {200,
       {{"link",
         "<https://evil.org/x?expand=false&cursor=Zm9v%3D&limit=9>; "
         "rel=\"next\""}},
       R"([{"type":"directory","path":"p/z"},)" + file("p/b") + "," +
           file("q") +
           R"(,{"type":"file","path":"p/a","size":130,"oid":"c",)"
           R"("lfs":{"oid":"sha","size":5000000000}}])"},
      "p/");

  ASSERT_TRUE(page) << page.error().message();
  ASSERT_EQ(page->objects.size(), 2u);
  EXPECT_EQ(page->objects[0].key, "p/a");
  EXPECT_EQ(page->objects[0].size_bytes, 5'000'000'000u);
  EXPECT_EQ(page->objects[0].etag, "sha");
  EXPECT_EQ(page->objects[1].etag, "ab12");
  EXPECT_EQ(page->common_prefixes.at(0), "p/z/");
  EXPECT_EQ(page->resume, "Zm9v=");
}

TEST(HubTreeTest, RefusesWhatIsNoTree) {
  struct Row {
    std::string body, says;
  };
  const Row rows[] = {
      {"", "no JSON array"},
      {"{}", "no JSON array"},
      {"[" + file("p/a", "-1") + "]", "size"},
      {"[" + file("p/a", "\"1\"") + "]", "size"},
      {"[" + file("p/a", "1.5") + "]", "size"},
      {"[" + file("p/a", "1", "") + "]", "hash"},
      {"[" + file("p/a", "1", "a\\r\\nX: y") + "]", "hash"},
      {"[" + file("p/a") + "," + file("p/a") + "]", "byte order"},
      {std::string(300'000, '['), "too large"},
  };
  for (const Row& row : rows) {
    const auto page = parse_hub_tree({200, {}, row.body}, "p/");

    ASSERT_FALSE(page) << row.body.substr(0, 80);
    EXPECT_EQ(page.error().code(), ErrorCode::kCorrupt);
    EXPECT_THAT(page.error().message(), HasSubstr(row.says));
  }
}

TEST(HubTreeTest, SurvivesAnyChange) {
  const std::string good = "[" + file("a") + "," + file("b") + "]";
  std::mt19937 random(11);
  for (int round = 0; round < 20'000; ++round) {
    std::string bad = good;
    for (int i = 0; i < 3; ++i) {
      bad[random() % bad.size()] = static_cast<char>(random());
    }
    (void)parse_hub_tree({200, {}, bad}, "");
  }
}

TEST(HubErrorTest, SaysWhatToDo) {
  const auto error = [](int status, bool has_token) {
    return error_from_hub({status, {{"x-error-code", "RepoNotFound"}}, "x"},
                          "reading hf://k", has_token);
  };
  EXPECT_EQ(error(401, false).code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(error(401, false).message(),
              HasSubstr("reading hf://k: HTTP 401 RepoNotFound (there is no"));
  EXPECT_THAT(error(403, true).message(), HasSubstr("terms"));
  EXPECT_EQ(error(404, true).code(), ErrorCode::kNotFound);
  EXPECT_EQ(error(429, false).code(), ErrorCode::kThrottled);
  EXPECT_THAT(error(429, false).message(), HasSubstr("HF_TOKEN"));
  EXPECT_EQ(error(503, false).code(), ErrorCode::kThrottled);
  EXPECT_EQ(error(500, false).code(), ErrorCode::kUnavailable);
  EXPECT_EQ(error(416, false).code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace leat
