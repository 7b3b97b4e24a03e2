#include "leat/store/hub/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "leat/store/cloud/testing/link_world.h"

namespace leat {
namespace {

using ::testing::HasSubstr;
using testing::LinkWorld;
using ::testing::Not;
using testing::Variables;

TEST(HubPathTest, NamesRepositoryRevisionAndPath) {
  struct Row {
    std::string text, repository, revision, path;
  };
  for (const Row& row : std::vector<Row>{
           {"o/n", "o/n", "main", ""},
           {"o/n/train/a.tar", "o/n", "main", "train/a.tar"},
           {"o/n.x@v1.0/train", "o/n.x", "v1.0", "train"},
           {"o/n@refs%2Fconvert%2Fparquet/x", "o/n", "refs/convert/parquet",
            "x"},
           {"o/n@refs/convert/parquet/x/y", "o/n", "refs/convert/parquet",
            "x/y"},
           {"o/n@refs/pr/7", "o/n", "refs/pr/7", ""},
       }) {
    const auto place = parse_hub_path(row.text);
    ASSERT_TRUE(place) << row.text;
    EXPECT_EQ(place->repository, row.repository);
    EXPECT_EQ(place->revision, row.revision);
    EXPECT_EQ(place->path, row.path);
  }
  for (const char* bad : {"", "o", "o/", "/n", "o/n@", "o/n@../x", "../n",
                          "o/n?x=y", "o/n@a%0d%0ab", "o o/n"}) {
    EXPECT_FALSE(parse_hub_path(bad)) << bad;
  }
}

TEST(HubSettingsTest, FindsEndpointAndToken) {
  LinkWorld world;
  const auto resolve = [&](const Variables& variables,
                           const HubOptions& options = {}) {
    return resolve_hub_settings(options, world.tools(variables).env);
  };

  EXPECT_EQ(resolve({})->endpoint.url(), "https://huggingface.co");
  EXPECT_EQ(resolve({})->token, "");
  EXPECT_EQ(resolve({{"HF_ENDPOINT", "https://mirror/hf/"}})->endpoint.url(),
            "https://mirror/hf");
  EXPECT_EQ(resolve({{"HF_ENDPOINT", "https://mirror"}},
                    {.endpoint_url = "https://mine"})
                ->endpoint.url(),
            "https://mine");
  world.write(".cache/huggingface/token", "of-file\n");
  EXPECT_EQ(resolve({})->token, "of-file");
  EXPECT_EQ(resolve({{"HF_TOKEN", "given"}})->token, "given");
  EXPECT_EQ(resolve({}, {.no_sign_request = true})->token, "");

  const auto broken = resolve({{"HF_TOKEN", "PLANTED\r\nX: y"}});
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().message(), Not(HasSubstr("PLANTED")));
  EXPECT_FALSE(resolve({{"HF_ENDPOINT", "http://mirror"}}))
      << "the token is sent to nobody in the clear";
  EXPECT_TRUE(
      resolve({{"HF_ENDPOINT", "http://mirror"}}, {.no_sign_request = true}));
}

}  // namespace
}  // namespace leat
