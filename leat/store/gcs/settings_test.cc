#include "leat/store/gcs/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "leat/store/cloud/testing/link_world.h"

namespace leat {
namespace {

using ::testing::HasSubstr;
using testing::LinkWorld;
using testing::Variables;

class GcsSettingsTest : public ::testing::Test {
 protected:
  Result<GcsSettings> resolve(const Variables& variables,
                              const GcsOptions& options = {},
                              std::string_view bucket = "ds-1") {
    return resolve_gcs_settings(bucket, options, world_.tools(variables));
  }

  LinkWorld world_;
};

TEST_F(GcsSettingsTest, GoesToGoogleUnlessToldOtherwise) {
  EXPECT_EQ(resolve({})->endpoint.url(), "https://storage.googleapis.com");
  EXPECT_TRUE(resolve({})->provider) << "the metadata server";

  const Variables emulated = {{"STORAGE_EMULATOR_HOST", "localhost:9000"}};
  EXPECT_EQ(resolve(emulated)->endpoint.url(), "http://localhost:9000");
  EXPECT_FALSE(resolve(emulated)->provider) << "an emulator asks nobody";

  const GcsOptions given{.endpoint_url = "https://host/x"};
  EXPECT_EQ(resolve(emulated, given)->endpoint.url(), "https://host/x");
  EXPECT_TRUE(resolve(emulated, given)->provider);
}

TEST_F(GcsSettingsTest, TakesHmacKeysBeforeTokens) {
  const auto of_gsutil =
      resolve({{"GS_ACCESS_KEY_ID", "GOOG1"}, {"GS_SECRET_ACCESS_KEY", "s"}});
  ASSERT_TRUE(of_gsutil);
  EXPECT_EQ(of_gsutil->hmac_keys->access_key_id, "GOOG1");
  EXPECT_FALSE(of_gsutil->provider);
  EXPECT_TRUE(resolve({{"GCS_KEY", "k"}, {"GCS_SECRET", "s"}})->hmac_keys);

  const auto half = resolve({{"GCS_KEY", "k"}});
  ASSERT_FALSE(half);
  EXPECT_THAT(half.error().message(), HasSubstr("GCS_SECRET is not"));
  EXPECT_FALSE(resolve({{"GCS_KEY", "k"}, {"GCS_SECRET", "s\r\nX: y"}}));
}

TEST_F(GcsSettingsTest, AsksAsNobodyWhereToldSo) {
  const auto settings = resolve({{"GCS_KEY", "k"}, {"GCS_SECRET", "s"}},
                                {.no_sign_request = true});
  ASSERT_TRUE(settings);
  EXPECT_FALSE(settings->hmac_keys);
  EXPECT_FALSE(settings->provider);
}

TEST_F(GcsSettingsTest, FindsTheProjectThatPays) {
  const GcsOptions pays{.requester_pays = true};
  const std::string file = world_.write(
      "key.json",
      R"({"type":"authorized_user","client_id":"i","client_secret":"s",)"
      R"("refresh_token":"r","quota_project_id":"of-file"})");

  EXPECT_EQ(
      resolve({{"GOOGLE_APPLICATION_CREDENTIALS", file}}, pays)->user_project,
      "of-file");
  EXPECT_EQ(resolve({{"GOOGLE_APPLICATION_CREDENTIALS", file},
                     {"GOOGLE_CLOUD_PROJECT", "mine"}},
                    pays)
                ->user_project,
            "mine");
  EXPECT_EQ(resolve({{"GOOGLE_CLOUD_PROJECT", "mine"}})->user_project, "");
  EXPECT_THAT(resolve({}, pays).error().message(),
              HasSubstr("GOOGLE_CLOUD_PROJECT"));
}

TEST_F(GcsSettingsTest, RefusesBucketsAndEndpointsThatCannotBe) {
  for (const char* bucket : {"", "ab", "a/b", "..", "b?x=y", "b\r\nc"}) {
    EXPECT_EQ(resolve({}, {}, bucket).error().code(),
              ErrorCode::kInvalidArgument)
        << bucket;
  }
  EXPECT_FALSE(resolve({}, {.endpoint_url = "ftp://x"}));
  EXPECT_THAT(resolve({}, {.endpoint_url = "http://host"}).error().message(),
              HasSubstr("https"))
      << "a token is sent to nobody in the clear";
  EXPECT_FALSE(resolve({{"STORAGE_EMULATOR_HOST", "user:pw@host"}}));
}

}  // namespace
}  // namespace leat
