// The two places that are asked by HTTP for the role of a machine: the EC2
// instance's metadata service, and the endpoint of a container.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "leat/store/s3/credentials/container.h"
#include "leat/store/s3/credentials/imds.h"
#include "leat/store/s3/credentials/testing/aws_answers.h"

namespace leat {
namespace {

using namespace std::chrono_literals;
using leat::testing::json_credentials;
using leat::testing::LinkWorld;
using leat::testing::Variables;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class MetadataTest : public ::testing::Test {
 protected:
  Result<CredentialAnswer> ask_instance(const Variables& variables = {}) {
    const CredentialTools tools = world_.tools(variables);
    return instance_role(imds_options({}, tools.env), tools)->fetch({});
  }
  Result<CredentialAnswer> ask_container(const Variables& variables) {
    return container_role(world_.tools(variables))->fetch({});
  }
  const HttpRequest& asked(std::size_t nth) { return script_.asked.at(nth); }
  void nobody_answers() {
    script_.replies.emplace_back(Error(ErrorCode::kDeadlineExceeded, "late"));
  }

  LinkWorld world_;
  HttpScript& script_ = world_.script;
};

TEST_F(MetadataTest, InstanceIsAskedForATokenThenForTheRole) {
  script_.answer(200, "PLANTEDIMDS");
  script_.answer(200, "my-role\n");
  script_.answer(200, json_credentials());

  const auto answer = ask_instance();

  ASSERT_TRUE(answer) << answer.error().message();
  ASSERT_TRUE(answer->found);
  EXPECT_EQ(answer->found->keys.access_key_id, "ASIA1");
  EXPECT_EQ(answer->found->keys.session_token, "PLANTEDTOKEN");
  EXPECT_EQ(world_.left(*answer->found), 1h);
  EXPECT_EQ(asked(0).method, "PUT");
  EXPECT_EQ(asked(0).url, "http://169.254.169.254/latest/api/token");
  EXPECT_EQ(
      HttpScript::header(asked(0), "x-aws-ec2-metadata-token-ttl-seconds"),
      "21600");
  EXPECT_EQ(asked(2).url,
            "http://169.254.169.254/latest/meta-data/iam/"
            "security-credentials/my-role");
  EXPECT_EQ(HttpScript::header(asked(2), "x-aws-ec2-metadata-token"),
            "PLANTEDIMDS");
  EXPECT_FALSE(world_.opened.at(0).may_use_proxy);
  EXPECT_EQ(world_.opened.at(0).connect_timeout, 1s);
}

TEST_F(MetadataTest, AHopLimitOfOneIsToldFromNobodyThere) {
  nobody_answers();
  script_.answer(401);
  const auto too_far = ask_instance();
  ASSERT_FALSE(too_far);
  EXPECT_EQ(too_far.error().code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(too_far.error().message(),
              AllOf(HasSubstr("hop limit is 1"),
                    HasSubstr("--http-put-response-hop-limit 2")));
  EXPECT_EQ(asked(1).method, "GET");

  nobody_answers();
  nobody_answers();
  const auto nobody = ask_instance();
  ASSERT_TRUE(nobody) << nobody.error().message();
  EXPECT_FALSE(nobody->found);
  EXPECT_THAT(nobody->why_not, HasSubstr("not an EC2 instance"));
}

TEST_F(MetadataTest, InstanceFollowsItsSettings) {
  const Variables off = {{"AWS_EC2_METADATA_DISABLED", "True"}};
  EXPECT_THAT(ask_instance(off)->why_not, HasSubstr("METADATA_DISABLED"));
  EXPECT_TRUE(script_.asked.empty());

  const auto endpoint_of = [&](const Variables& variables) {
    const auto options = imds_options({}, world_.tools(variables).env);
    return options ? options->endpoint : options.error().message();
  };
  EXPECT_EQ(endpoint_of({{"AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "IPv6"}}),
            "http://[fd00:ec2::254]");
  EXPECT_EQ(endpoint_of({{"AWS_EC2_METADATA_SERVICE_ENDPOINT",
                          "http://localhost:1338/"}}),
            "http://localhost:1338");
  EXPECT_THAT(endpoint_of({{"AWS_EC2_METADATA_SERVICE_ENDPOINT", "nonsense"}}),
              HasSubstr("AWS_EC2_METADATA_SERVICE_ENDPOINT"));

  nobody_answers();
  script_.answer(200, "T");
  script_.answer(404);
  const auto answer = ask_instance({{"AWS_METADATA_SERVICE_NUM_ATTEMPTS", "2"},
                                    {"AWS_METADATA_SERVICE_TIMEOUT", "3"}});
  EXPECT_THAT(answer->why_not, HasSubstr("has no role"));
  EXPECT_EQ(world_.opened.back().connect_timeout, 3s);
}

TEST_F(MetadataTest, InstanceThatAnswersNonsenseIsAnErrorThatHidesIt) {
  const auto answers =
      [&](const std::vector<std::pair<int, std::string>>& replies) {
        script_.replies.clear();
        script_.answer(200, "PLANTEDIMDS");
        for (const auto& [status, body] : replies) script_.answer(status, body);
        return ask_instance().error();
      };
  struct Row {
    std::vector<std::pair<int, std::string>> replies;
    ErrorCode code;
    const char* says;
  };
  const Row rows[] = {
      {{{200, "../../PLANTED?x"}}, ErrorCode::kUnavailable, "name of the role"},
      {{{200, std::string(5000, 'r')}}, ErrorCode::kUnavailable, "name of"},
      {{{200, "r"}, {503, "PLANTEDIMDS"}}, ErrorCode::kUnavailable, "503"},
      {{{200, "r"}, {200, "PLANTED"}}, ErrorCode::kPermissionDenied, "no JSON"},
      {{{200, "r"}, {200, json_credentials("Failed")}},
       ErrorCode::kPermissionDenied,
       "refuses (Failed)"},
      {{{200, "r"},
        {200, R"({"Code":"X","Message":"token PLANTEDIMDS is bad"})"}},
       ErrorCode::kPermissionDenied,
       "token (hidden) is bad"},
      {{{200, "r"},
        {200, R"({"AccessKeyId":"A","SecretAccessKey":"PLANTED"})"}},
       ErrorCode::kPermissionDenied,
       "no Expiration"},
      {{{200, "r"}, {200, std::string(60000, '[')}},
       ErrorCode::kPermissionDenied,
       "no JSON"},
  };
  for (const Row& row : rows) {
    const Error error = answers(row.replies);
    EXPECT_EQ(error.code(), row.code) << row.says;
    EXPECT_THAT(error.message(),
                AllOf(HasSubstr(row.says), Not(HasSubstr("PLANTED"))));
  }
}

TEST_F(MetadataTest, ContainerIsAskedWithItsToken) {
  const std::string file = world_.write("token", "PLANTEDAUTH\n");
  script_.answer(200, json_credentials());
  script_.answer(200, json_credentials());

  const auto ecs =
      ask_container({{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/x?id=1"},
                     {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "Basic PLANTED"}});
  const auto eks =
      ask_container({{"AWS_CONTAINER_CREDENTIALS_FULL_URI",
                      "http://169.254.170.23/v1/credentials"},
                     {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "PLANTEDOTHER"},
                     {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", file}});

  ASSERT_TRUE(ecs && ecs->found) << ecs.error().message();
  ASSERT_TRUE(eks && eks->found) << eks.error().message();
  EXPECT_EQ(asked(0).url, "http://169.254.170.2/v2/x?id=1");
  EXPECT_EQ(HttpScript::header(asked(0), "Authorization"), "Basic PLANTED");
  EXPECT_EQ(asked(1).url, "http://169.254.170.23/v1/credentials");
  EXPECT_EQ(HttpScript::header(asked(1), "Authorization"), "PLANTEDAUTH");
  EXPECT_FALSE(world_.opened.at(1).may_use_proxy);
  EXPECT_FALSE(ask_container({})->found);
}

TEST_F(MetadataTest, ContainerTokensGoToThisMachineOrOverTls) {
  const auto is_asked = [&](const char* uri) {
    const std::size_t before = script_.asked.size();
    script_.replies.clear();
    script_.answer(403);
    const auto answer =
        ask_container({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", uri},
                       {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "PLANTED"}});
    EXPECT_FALSE(answer);
    EXPECT_THAT(answer.error().message(), Not(HasSubstr("PLANTED")));
    return script_.asked.size() > before;
  };
  for (const char* uri :
       {"https://anywhere.example/x", "http://localhost:80/",
        "http://127.0.0.9/", "http://[::1]:9/x", "http://169.254.170.2/",
        "http://169.254.170.23/", "http://[fd00:ec2::23]/v1"}) {
    EXPECT_TRUE(is_asked(uri)) << uri;
  }
  for (const char* uri :
       {"http://anywhere.example/x", "http://10.0.0.1/",
        "http://127.evil.example/", "http://169.254.170.2.example/",
        "http://169.254.169.254/", "http://PLANTED@127.0.0.1/",
        "ftp://127.0.0.1/", "127.0.0.1", "http://127.0.0.1/\r\nX: y"}) {
    EXPECT_FALSE(is_asked(uri)) << uri;
  }
}

TEST_F(MetadataTest, ContainerFailuresAreTypedAndHideTheToken) {
  const Variables variables = {
      {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/x"},
      {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "PLANTED"}};
  script_.answer(400, R"({"code":"BadToken","message":"PLANTED is no token"})");
  const Error refused = ask_container(variables).error();
  EXPECT_EQ(refused.code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(refused.message(),
              HasSubstr("HTTP 400 (BadToken: (hidden) is no token)"));

  script_.asked.clear();
  for (int i = 0; i < 3; ++i) script_.answer(500);
  EXPECT_EQ(ask_container(variables).error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(script_.asked.size(), 3u);

  const Variables bad_file = {
      {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/x"},
      {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", world_.write("t", "a\nb")}};
  EXPECT_EQ(ask_container(bad_file).error().code(),
            ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace leat
