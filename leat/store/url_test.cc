#include "leat/store/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(UrlTest, CutsEverySupportedForm) {
  struct Case {
    std::string text;
    std::string scheme;
    std::string authority;
    std::string path;
    std::string again;
  };
  for (const Case& expected : std::vector<Case>{
           {"s3://bucket/imagenet/train", "s3", "bucket", "imagenet/train",
            "s3://bucket/imagenet/train"},
           {"S3://bucket", "s3", "bucket", "", "s3://bucket"},
           {"s3://bucket//a/b//", "s3", "bucket", "a/b", "s3://bucket/a/b"},
           {"s3://b/what?#", "s3", "b", "what?#", "s3://b/what?#"},
           {"az://c/a/b/", "az", "c", "a/b", "az://c/a/b"},
           {"abfss://c@acc.dfs.core.windows.net/a/", "abfss",
            "c@acc.dfs.core.windows.net", "a",
            "abfss://c@acc.dfs.core.windows.net/a"},
           {"https://host:8080/data/", "https", "host:8080", "data",
            "https://host:8080/data"},
           {"http://[::1]:80", "http", "[::1]:80", "", "http://[::1]:80"},
           {"file:///data/x/", "file", "", "/data/x", "file:///data/x"},
           {"file://localhost/data", "file", "", "/data", "file:///data"},
           {"/", "file", "", "/", "file:///"},
           {"/data/x", "file", "", "/data/x", "file:///data/x"},
           {"data/x", "file", "", "data/x", "data/x"},
       }) {
    const auto url = parse_url(expected.text);
    ASSERT_TRUE(url) << expected.text << ": " << url.error().message();
    EXPECT_EQ(url->scheme, expected.scheme) << expected.text;
    EXPECT_EQ(url->authority, expected.authority) << expected.text;
    EXPECT_EQ(url->path, expected.path) << expected.text;
    EXPECT_EQ(url->text(), expected.again);
  }
}

TEST(UrlTest, NamesTheBucketThatItIsIn) {
  EXPECT_EQ(parse_url("s3://photos/train/a")->bucket(), "s3://photos");
  EXPECT_EQ(parse_url("abfss://c@h/a")->bucket(), "abfss://c@h");
  EXPECT_EQ(parse_url("HTTPS://Host:80/a")->bucket(), "https://host:80");
  EXPECT_EQ(parse_url("https://host:443/a")->bucket(), "https://host");
  EXPECT_EQ(parse_url("http://[::1]:80")->bucket(), "http://[::1]");
  EXPECT_EQ(parse_url("file:///data/x")->bucket(), "");
}

TEST(UrlTest, RefusesWhatIsNoPlaceOfData) {
  for (const char* text : {"",
                           "ftp://host/x",
                           "://x",
                           "s3://",
                           "s3:///x",
                           "http:///x",
                           "file://host/x",
                           "file://x",
                           "http://host:port/x",
                           "http://ho st/",
                           "http://host/x?y=1",
                           "http://host/x#y",
                           "https://[::1/x",
                           "s3://bucket/a\nb",
                           "http://:80/x",
                           "http://host:/x",
                           "abfss://c/x",
                           "abfss://@h/x",
                           "abfss://c@/x",
                           "abfss://c@h@i/x"}) {
    const auto url = parse_url(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().code(), ErrorCode::kInvalidArgument);
  }
}

TEST(UrlTest, KeepsSecretsOutOfItsErrors) {
  for (const char* text :
       {"s3://key:secret@bucket/x", "abfss://key:secret@host/x",
        "az://key:secret@c/x", "https://user:secret@host/x?y",
        "https://host/x?token=secret"}) {
    const auto url = parse_url(text);
    ASSERT_FALSE(url) << text;
    EXPECT_THAT(url.error().message(), Not(HasSubstr("secret")));
  }
}

TEST(UrlTest, NamesTheSchemesThereAre) {
  EXPECT_THAT(parse_url("gopher://x").error().message(), HasSubstr("s3://"));
}

TEST(UrlTest, SaysHowToComeToWhatLiesElsewhere) {
  for (const char* azure :
       {"https://account.blob.core.windows.net/container",
        "https://ACCOUNT.dfs.core.windows.net:443/container",
        "wasbs://container@account.blob.core.windows.net/x"}) {
    const auto url = parse_url(azure);
    ASSERT_FALSE(url) << azure;
    EXPECT_EQ(url.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(url.error().message(), HasSubstr("az://"));
    EXPECT_THAT(url.error().message(), HasSubstr("abfss://"));
  }
  EXPECT_THAT(parse_url("gcs://bucket/x").error().message(),
              ::testing::HasSubstr("gs://"));
  EXPECT_TRUE(parse_url("https://blob.core.windows.net.example.org/x"));
}

}  // namespace
}  // namespace leat
