#include "leat/store/s3/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace leat {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using EnvVariables = std::map<std::string, std::string, std::less<>>;

/// A home folder with the two files in it.
class S3SettingsTest : public ::testing::Test {
 protected:
  S3SettingsTest()
      : home_(std::filesystem::temp_directory_path() /
              ("leat-settings-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(home_ / ".aws");
  }
  ~S3SettingsTest() override { std::filesystem::remove_all(home_); }

  void config(std::string_view text) { write(".aws/config", text); }
  void credentials(std::string_view text) { write(".aws/credentials", text); }
  void write(std::string_view name, std::string_view text) {
    std::ofstream(home_ / name, std::ios::binary) << text;
  }

  Result<S3Settings> resolve(EnvVariables variables,
                             const S3Options& options = {},
                             std::string_view bucket = "ds") {
    variables.try_emplace("HOME", home_.string());
    return resolve_s3_settings(bucket, options, fake_env(std::move(variables)));
  }

  /// As anonymous, when it is about where and not about who.
  std::string base_url(EnvVariables variables, S3Options options = {},
                       std::string_view bucket = "ds-1") {
    options.no_sign_request = true;
    const auto settings = resolve(std::move(variables), options, bucket);
    return settings ? settings->base_url
                    : std::string(to_string(settings.error().code()));
  }

  const std::filesystem::path home_;
};

TEST_F(S3SettingsTest, FollowsAwsOrderOfEndpoints) {
  config(
      "[default]\nendpoint_url = http://profile\nservices = mine\n"
      "[profile bare]\nendpoint_url = http://bare\n"
      "[profile ignoring]\nendpoint_url = http://x\n"
      "ignore_configured_endpoint_urls = true\n"
      "[services mine]\ns3 =\n  endpoint_url = http://services\n");
  EnvVariables variables = {{"AWS_ENDPOINT_URL_S3", "http://s3-variable"},
                            {"AWS_ENDPOINT_URL", "http://variable"}};
  S3Options explicit_url;
  explicit_url.endpoint_url = "http://explicit/";

  EXPECT_EQ(base_url(variables, explicit_url), "http://explicit/ds-1");
  EXPECT_EQ(base_url(variables), "http://s3-variable/ds-1");
  variables.erase("AWS_ENDPOINT_URL_S3");
  EXPECT_EQ(base_url(variables), "http://variable/ds-1");
  variables.erase("AWS_ENDPOINT_URL");
  EXPECT_EQ(base_url(variables), "http://services/ds-1");
  EXPECT_EQ(base_url({{"AWS_PROFILE", "bare"}}), "http://bare/ds-1");
  EXPECT_EQ(base_url({{"AWS_PROFILE", "ignoring"}}),
            "https://ds-1.s3.us-east-1.amazonaws.com");
  variables = {{"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true"},
               {"AWS_ENDPOINT_URL", "http://variable"}};
  EXPECT_EQ(base_url(variables), "https://ds-1.s3.us-east-1.amazonaws.com");
  EXPECT_EQ(base_url(variables, explicit_url), "http://explicit/ds-1");
}

TEST_F(S3SettingsTest, FollowsAwsOrderOfRegions) {
  config("[default]\nregion=from-profile\n");
  S3Options options;
  options.no_sign_request = true;
  const auto region = [&](EnvVariables variables) {
    return resolve(std::move(variables), options)->region;
  };

  EXPECT_EQ(region({}), "from-profile");
  EXPECT_EQ(region({{"AWS_CONFIG_FILE", "/nowhere"}}), "us-east-1");
  EXPECT_EQ(region({{"AWS_DEFAULT_REGION", "b"}}), "b");
  EXPECT_EQ(region({{"AWS_DEFAULT_REGION", "b"}, {"AWS_REGION", "a"}}), "a");
  EXPECT_EQ(region({{"AWS_DEFAULT_REGION", "b"}, {"AWS_REGION", ""}}), "b");
  options.region = "explicit";
  EXPECT_EQ(region({{"AWS_REGION", "a"}}), "explicit");
}

TEST_F(S3SettingsTest, PutsTheBucketIntoTheHostOnlyWhereThatWorks) {
  struct Row {
    std::string_view bucket, endpoint, region, url;
  };
  const Row rows[] = {
      {"ds-1", "", "eu-west-1", "https://ds-1.s3.eu-west-1.amazonaws.com"},
      {"ds-1", "", "cn-north-1", "https://ds-1.s3.cn-north-1.amazonaws.com.cn"},
      {"a.b", "", "eu-west-1", "https://s3.eu-west-1.amazonaws.com/a.b"},
      {"Old_One", "", "us-east-1",
       "https://s3.us-east-1.amazonaws.com/Old_One"},
      {"ds-1", "https://s3.eu-west-1.amazonaws.com", "",
       "https://ds-1.s3.eu-west-1.amazonaws.com"},
      {"ds-1", "http://localhost:9000", "", "http://localhost:9000/ds-1"},
      {"ds-1", "http://127.0.0.1:80/", "", "http://127.0.0.1/ds-1"},
      {"ds-1", "https://[::1]:443", "", "https://[::1]/ds-1"},
      {"ds-1", "https://minio.example:8443/s3//", "",
       "https://minio.example:8443/s3/ds-1"},
  };
  for (const Row& row : rows) {
    S3Options options;
    options.endpoint_url = row.endpoint;
    options.region = row.region;
    EXPECT_EQ(base_url({}, options, row.bucket), row.url);
  }
}

TEST_F(S3SettingsTest, TheUserOverrulesAddressing) {
  S3Options options;
  options.endpoint_url = "http://localhost:9000";
  options.addressing = Addressing::kVirtualHost;
  EXPECT_EQ(base_url({}, options), "http://ds-1.localhost:9000");
  EXPECT_EQ(base_url({}, options, "a_b"), "InvalidArgument");

  options = {};
  options.addressing = Addressing::kPath;
  EXPECT_EQ(base_url({}, options), "https://s3.us-east-1.amazonaws.com/ds-1");

  config("[default]\ns3 =\n  addressing_style = path\n");
  EXPECT_EQ(base_url({}), "https://s3.us-east-1.amazonaws.com/ds-1");
}

TEST_F(S3SettingsTest, HostIsWhatTheHostHeaderSays) {
  S3Options options;
  options.no_sign_request = true;
  options.endpoint_url = "https://minio.example:8443/s3";

  const auto settings = resolve({}, options);

  EXPECT_EQ(settings->host, "minio.example:8443");
  EXPECT_EQ(settings->base_path, "/s3/ds");
  EXPECT_TRUE(settings->is_tls());
}

TEST_F(S3SettingsTest, RefusesWhatCannotBeAndSaysWhereItStands) {
  struct Row {
    EnvVariables variables;
    std::string_view bucket, says;
  };
  const Row rows[] = {
      {{{"AWS_ENDPOINT_URL", "localhost:9000"}}, "ds", "AWS_ENDPOINT_URL"},
      {{{"AWS_ENDPOINT_URL_S3", "ftp://x"}}, "ds", "AWS_ENDPOINT_URL_S3"},
      {{{"AWS_ENDPOINT_URL", "http://"}}, "ds", "no host"},
      {{{"AWS_ENDPOINT_URL", "http://u:SECRET@h"}}, "ds", "'@'"},
      {{{"AWS_ENDPOINT_URL", "http://h/?SECRET"}}, "ds", "query"},
      {{{"AWS_ENDPOINT_URL", "http://h\r\nX: SECRET"}}, "ds", "no host name"},
      {{{"AWS_REGION", "evil.example/"}}, "ds", "evil.example%2F"},
      {{{"AWS_MAX_ATTEMPTS", "many"}}, "ds", "AWS_MAX_ATTEMPTS"},
      {{{"AWS_MAX_ATTEMPTS", "0"}}, "ds", "AWS_MAX_ATTEMPTS"},
      {{{"AWS_PROFILE", "absent"}}, "ds", "no AWS profile 'absent'"},
      {{}, "", "bucket name"},
      {{}, "a/b", "bucket name"},
      {{}, "a\nb", "a%0Ab"},
      {{}, "..", "bucket name"},
  };
  for (const Row& row : rows) {
    S3Options options;
    options.no_sign_request = true;
    const auto settings = resolve(row.variables, options, row.bucket);

    ASSERT_FALSE(settings) << row.says;
    EXPECT_EQ(settings.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(
        settings.error().message(),
        AllOf(HasSubstr(std::string(row.says)), Not(HasSubstr("SECRET"))));
  }
}

TEST_F(S3SettingsTest, AttemptsAndCaBundleFollowTheSameRules) {
  S3Options options;
  options.no_sign_request = true;
  EXPECT_EQ(resolve({}, options)->max_attempts, 0u);
  config("[default]\nmax_attempts = 4\nca_bundle = /profile.pem\n");
  EXPECT_EQ(resolve({}, options)->max_attempts, 4u);
  EXPECT_EQ(resolve({}, options)->ca_bundle, "/profile.pem");
  const EnvVariables variables = {{"AWS_MAX_ATTEMPTS", "7"},
                                  {"AWS_CA_BUNDLE", "/variable.pem"}};
  EXPECT_EQ(resolve(variables, options)->max_attempts, 7u);
  EXPECT_EQ(resolve(variables, options)->ca_bundle, "/variable.pem");
  options.max_attempts = 2;
  options.ca_bundle = "/explicit.pem";
  EXPECT_EQ(resolve(variables, options)->max_attempts, 2u);
  EXPECT_EQ(resolve(variables, options)->ca_bundle, "/explicit.pem");
}

TEST_F(S3SettingsTest, TakesCredentialsFromTheEnvironmentThenTheProfile) {
  credentials(
      "[default]\naws_access_key_id = ID\naws_secret_access_key = S/+=\n"
      "[dev]\naws_access_key_id=DEV\naws_secret_access_key=D\n"
      "aws_session_token=T==\n");
  config("[profile conf]\naws_access_key_id=C\naws_secret_access_key=S\n");
  const EnvVariables keys = {{"AWS_ACCESS_KEY_ID", "ENV"},
                             {"AWS_SECRET_ACCESS_KEY", "SECRET"},
                             {"AWS_SESSION_TOKEN", "TOKEN"},
                             {"AWS_PROFILE", "dev"}};

  EXPECT_EQ(resolve(keys)->credentials->access_key_id, "ENV");
  EXPECT_EQ(resolve(keys)->credentials->session_token, "TOKEN");
  EXPECT_EQ(resolve({})->credentials->access_key_id, "ID");
  EXPECT_EQ(resolve({})->credentials->secret_access_key, "S/+=");
  EXPECT_EQ(resolve({{"AWS_PROFILE", "dev"}})->credentials->session_token,
            "T==");
  EXPECT_EQ(
      resolve({{"AWS_DEFAULT_PROFILE", "dev"}})->credentials->access_key_id,
      "DEV");
  EXPECT_EQ(resolve({{"AWS_PROFILE", "conf"}})->credentials->access_key_id,
            "C");
  S3Options named;
  named.profile = "dev";
  EXPECT_EQ(resolve(keys, named)->credentials->access_key_id, "DEV")
      << "a profile on the command line goes before the environment";
  named.no_sign_request = true;
  EXPECT_FALSE(resolve(keys, named)->credentials);
}

TEST_F(S3SettingsTest, FilesMayStandElsewhere) {
  write("c", "[default]\naws_access_key_id=A\naws_secret_access_key=B\n");
  write("f", "[default]\nregion = x\n");

  const auto settings = resolve({{"AWS_SHARED_CREDENTIALS_FILE", "~/c"},
                                 {"AWS_CONFIG_FILE", (home_ / "f").string()}});

  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->credentials->access_key_id, "A");
  EXPECT_EQ(settings->region, "x");
}

TEST_F(S3SettingsTest, WithoutCredentialsSaysWhatWasTriedAndWhatToDo) {
  config("[default]\nregion = x\n");

  const auto settings = resolve({{"AWS_EC2_METADATA_DISABLED", "true"}});

  ASSERT_FALSE(settings);
  EXPECT_EQ(settings.error().code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(
      settings.error().message(),
      AllOf(HasSubstr("AWS_ACCESS_KEY_ID"), HasSubstr("profile 'default'"),
            HasSubstr("credentials (no such file)"), HasSubstr(".aws/config"),
            HasSubstr("AWS_WEB_IDENTITY_TOKEN_FILE is not set"),
            HasSubstr("AWS_CONTAINER_CREDENTIALS_FULL_URI"),
            HasSubstr("AWS_EC2_METADATA_DISABLED is set"),
            HasSubstr("--no-sign-request")));
}

TEST_F(S3SettingsTest, AsksNobodyForCredentialsBeforeTheyAreNeeded) {
  config("[profile p]\ncredential_process = /bin/false\n");
  const EnvVariables rows[] = {
      {{"AWS_PROFILE", "p"}},
      {{"AWS_WEB_IDENTITY_TOKEN_FILE", "/nowhere"}},
      {{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/x"}},
      {},  // The instance's metadata service.
  };
  for (const EnvVariables& variables : rows) {
    const auto settings = resolve(variables);

    ASSERT_TRUE(settings) << settings.error().message();
    EXPECT_FALSE(settings->credentials);
    EXPECT_TRUE(settings->provider);
    EXPECT_TRUE(settings->is_signed());
  }
}

TEST_F(S3SettingsTest, WhatCannotChangeIsNotAskedAgain) {
  credentials("[default]\naws_access_key_id = A\naws_secret_access_key = B\n");

  EXPECT_TRUE(resolve({})->provider) << "a file may be written anew";
  EXPECT_FALSE(
      resolve({{"AWS_ACCESS_KEY_ID", "A"}, {"AWS_SECRET_ACCESS_KEY", "B"}})
          ->provider);
}

TEST_F(S3SettingsTest, MovesToAnotherRegion) {
  S3Options options;
  options.no_sign_request = true;
  options.region = "eu-west-1";
  const auto at_aws =
      moved_to_region(*resolve({}, options, "ds-1"), "us-west-2");
  options.endpoint_url = "http://localhost:9000";
  const auto own = moved_to_region(*resolve({}, options, "ds-1"), "us-west-2");

  EXPECT_EQ(at_aws.base_url, "https://ds-1.s3.us-west-2.amazonaws.com");
  EXPECT_EQ(at_aws.host, "ds-1.s3.us-west-2.amazonaws.com");
  EXPECT_EQ(own.base_url, "http://localhost:9000/ds-1");
  EXPECT_EQ(own.region, "us-west-2");
}

TEST_F(S3SettingsTest, HalfOrDirtyCredentialsAreAnErrorThatHidesThem) {
  const EnvVariables rows[] = {
      {{"AWS_ACCESS_KEY_ID", "SECRET"}},
      {{"AWS_SECRET_ACCESS_KEY", "SECRET"}},
      {{"AWS_ACCESS_KEY_ID", "A"}, {"AWS_SECRET_ACCESS_KEY", "SECRET\n"}},
      {{"AWS_ACCESS_KEY_ID", "A\r\nX: SECRET"}, {"AWS_SECRET_ACCESS_KEY", "S"}},
      {{"AWS_ACCESS_KEY_ID", "A"},
       {"AWS_SECRET_ACCESS_KEY", "S"},
       {"AWS_SESSION_TOKEN", "SECRET "}},
  };
  for (const EnvVariables& variables : rows) {
    const auto settings = resolve(variables);

    ASSERT_FALSE(settings);
    EXPECT_EQ(settings.error().code(), ErrorCode::kPermissionDenied);
    std::string message = settings.error().message();
    for (std::size_t at;
         (at = message.find("AWS_SECRET_ACCESS_KEY")) != std::string::npos;) {
      message.erase(at, 21);
    }
    EXPECT_THAT(message, Not(HasSubstr("SECRET")));
  }
  credentials("[default]\naws_access_key_id = A\n");
  EXPECT_EQ(resolve({}).error().code(), ErrorCode::kPermissionDenied);
}

TEST_F(S3SettingsTest, ABrokenOrHugeFileIsNamed) {
  config("[default\n");
  EXPECT_THAT(resolve({}).error().message(), HasSubstr(".aws/config, line 1"));
  config(std::string((1 << 20) + 1, '#'));
  EXPECT_THAT(resolve({}).error().message(), HasSubstr("larger than 1 MiB"));
  EXPECT_THAT(resolve({{"AWS_CONFIG_FILE", home_.string()}}).error().message(),
              HasSubstr("directory"));
}

}  // namespace
}  // namespace leat
