// Profiles and the places they lead to: roles by STS, processes, helpers.

#include "leat/store/s3/credentials/profile_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "leat/store/s3/aws/sigv4_verify.h"
#include "leat/store/s3/credentials/sts.h"
#include "leat/store/s3/credentials/testing/aws_answers.h"
#include "leat/store/s3/credentials/web_identity.h"

namespace leat {
namespace {

using namespace std::chrono_literals;
using leat::testing::LinkWorld;
using leat::testing::sts_grant;
using leat::testing::sts_refusal;
using leat::testing::Variables;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kSource =
    "[source]\naws_access_key_id = AKSOURCE\n"
    "aws_secret_access_key = PLANTEDSOURCE\n";

class ProfileLinkTest : public ::testing::Test {
 protected:
  void config(std::string_view text) { world_.write(".aws/config", text); }
  void credentials(std::string_view text) {
    world_.write(".aws/credentials", text);
  }

  Result<CredentialAnswer> ask(const std::string& profile,
                               const Variables& variables = {},
                               const std::string& helper = {}) {
    const CredentialTools tools = world_.tools(variables);
    const auto loaded = load_aws_profile(profile, tools.env);
    if (!loaded) return loaded.error();
    return profile_link({.profile = profile, .region = {}, .helper = helper},
                        *loaded, tools)
        ->fetch({});
  }
  Error error_of(const std::string& profile, const Variables& variables = {}) {
    const auto answer = ask(profile, variables);
    EXPECT_FALSE(answer) << profile;
    Error error =
        answer ? Error(ErrorCode::kInternal, "found some") : answer.error();
    EXPECT_THAT(error.message(), Not(HasSubstr("PLANTED")));
    return error;
  }

  /// STS's verdict on the signature of a request.
  SignatureVerdict judge(std::size_t nth, const Credentials& keys) {
    const HttpRequest& request = script_.asked.at(nth);
    const std::size_t path = request.url.find('/', 8);
    const std::string host = request.url.substr(8, path - 8);
    std::vector<ReceivedRequest::Header> headers = {{"host", host}};
    for (const std::string& line : request.headers) {
      const std::size_t colon = line.find(": ");
      headers.emplace_back(std::string_view(line).substr(0, colon),
                           std::string_view(line).substr(colon + 2));
    }
    return verify_signature(
               {request.method, std::string_view(request.url).substr(path),
                headers},
               [&](std::string_view) { return keys; },
               AmzDate::parse("20240229T120000Z")->time())
        .verdict;
  }

  LinkWorld world_;
  HttpScript& script_ = world_.script;
};

TEST_F(ProfileLinkTest, ARoleIsAssumedWithTheCredentialsOfItsSource) {
  credentials(kSource);
  config(
      "[profile role]\nrole_arn = arn:aws:iam::1:role/r\n"
      "source_profile = source\nregion = eu-west-1\nexternal_id = x/1\n"
      "role_session_name = me\nduration_seconds = 900\n");
  script_.answer(200, sts_grant("AssumeRole"));

  const auto answer = ask("role");

  ASSERT_TRUE(answer && answer->found) << answer.error().message();
  EXPECT_EQ(answer->found->keys.access_key_id, "ASIA2");
  EXPECT_EQ(answer->found->keys.session_token, "PLANTEDTOKEN2");
  EXPECT_EQ(world_.left(*answer->found), 1h);
  EXPECT_EQ(script_.asked.at(0).url, "https://sts.eu-west-1.amazonaws.com/");
  EXPECT_EQ(script_.bodies.at(0),
            "Action=AssumeRole&DurationSeconds=900&ExternalId=x%2F1&"
            "RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr&RoleSessionName=me&"
            "Version=2011-06-15");
  EXPECT_EQ(judge(0, {"AKSOURCE", "PLANTEDSOURCE", ""}),
            SignatureVerdict::kValid);
  EXPECT_THAT(HttpScript::header(script_.asked.at(0), "Authorization"),
              HasSubstr("AKSOURCE/20240229/eu-west-1/sts/"));
}

TEST_F(ProfileLinkTest, AClockThatIsWrongHereIsMadeUpFor) {
  credentials(kSource);
  config("[profile role]\nrole_arn = r\nsource_profile = source\n");
  const auto too_old = [&] {
    script_.answer(403, sts_refusal("SignatureDoesNotMatch", "expired"),
                   {{"date", "Thu, 29 Feb 2024 14:00:00 GMT"}});
  };
  too_old();
  script_.answer(200, sts_grant("AssumeRole"));

  ASSERT_TRUE(ask("role"));

  EXPECT_EQ(HttpScript::header(script_.asked.at(0), "X-Amz-Date"),
            "20240229T120000Z");
  EXPECT_EQ(HttpScript::header(script_.asked.at(1), "X-Amz-Date"),
            "20240229T140000Z");
  too_old();
  too_old();
  EXPECT_EQ(error_of("role").code(), ErrorCode::kPermissionDenied);
  EXPECT_EQ(script_.asked.size(), 4u) << "once";
}

TEST_F(ProfileLinkTest, ATimeThatNoClockShowsIsNotBelieved) {
  credentials(kSource);
  config("[profile role]\nrole_arn = r\nsource_profile = source\n");
  script_.answer(403, sts_refusal("SignatureDoesNotMatch", "expired"),
                 {{"date", "Fri, 31 Dec 9999 23:59:60 GMT"}});

  EXPECT_EQ(error_of("role").code(), ErrorCode::kPermissionDenied);
  EXPECT_EQ(script_.asked.size(), 1u);
}

TEST_F(ProfileLinkTest, ARoleMayBeTheSourceOfARole) {
  credentials(kSource);
  config(
      "[profile inner]\nrole_arn = arn:inner\nsource_profile = source\n"
      "[profile outer]\nrole_arn = arn:outer\nsource_profile = inner\n");
  script_.answer(200, sts_grant("AssumeRole"));
  script_.answer(200, sts_grant("AssumeRole"));

  const auto answer = ask("outer");

  ASSERT_TRUE(answer && answer->found) << answer.error().message();
  EXPECT_THAT(script_.bodies.at(0), HasSubstr("arn%3Ainner"));
  EXPECT_THAT(script_.bodies.at(1), HasSubstr("arn%3Aouter"));
  EXPECT_EQ(HttpScript::header(script_.asked.at(1), "X-Amz-Security-Token"),
            "PLANTEDTOKEN2");
  EXPECT_EQ(judge(1, {"ASIA2", "PLANTEDSECRET2", "PLANTEDTOKEN2"}),
            SignatureVerdict::kValid);
}

TEST_F(ProfileLinkTest, ARoleMayHaveItsSourceInAPlace) {
  config(
      "[profile env]\nrole_arn = r\ncredential_source = Environment\n"
      "[profile ecs]\nrole_arn = r\ncredential_source = EcsContainer\n"
      "[profile ec2]\nrole_arn = r\ncredential_source = Ec2InstanceMetadata\n"
      "[profile bad]\nrole_arn = r\ncredential_source = Elsewhere\n"
      "[profile own]\nrole_arn = r\nsource_profile = own\n"
      "aws_access_key_id = A\naws_secret_access_key = PLANTED\n");
  const Variables variables = {
      {"AWS_ACCESS_KEY_ID", "AKENV"},
      {"AWS_SECRET_ACCESS_KEY", "PLANTEDENV"},
      {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/x"}};

  script_.answer(200, sts_grant("AssumeRole"));
  ASSERT_TRUE(ask("env", variables));
  EXPECT_EQ(judge(0, {"AKENV", "PLANTEDENV", ""}), SignatureVerdict::kValid);

  script_.answer(200, leat::testing::json_credentials());
  script_.answer(200, sts_grant("AssumeRole"));
  ASSERT_TRUE(ask("ecs", variables));
  EXPECT_EQ(judge(2, {"ASIA1", "PLANTEDSECRET", "PLANTEDTOKEN"}),
            SignatureVerdict::kValid);

  for (const char* reply : {"TOKEN", "role"}) script_.answer(200, reply);
  script_.answer(200, leat::testing::json_credentials());
  script_.answer(200, sts_grant("AssumeRole"));
  ASSERT_TRUE(ask("ec2", variables));

  script_.answer(200, sts_grant("AssumeRole"));
  ASSERT_TRUE(ask("own"));
  EXPECT_THAT(error_of("bad").message(), HasSubstr("credential_source"));
  EXPECT_THAT(error_of("env").message(),
              HasSubstr("credential_source Environment: AWS_ACCESS_KEY_ID"));
}

TEST_F(ProfileLinkTest, ProfilesThatCannotBeAreNamed) {
  config(
      "[profile circle]\nrole_arn = r\nsource_profile = back\n"
      "[profile back]\nrole_arn = r\nsource_profile = circle\n"
      "[profile self]\nrole_arn = r\nsource_profile = self\n"
      "[profile both]\nrole_arn = r\nsource_profile = x\n"
      "credential_source = Environment\n"
      "[profile neither]\nrole_arn = r\n"
      "[profile lost]\nrole_arn = r\nsource_profile = nobody\n"
      "[profile bare]\nrole_arn = r\nsource_profile = empty\n"
      "[profile empty]\nregion = x\n"
      "[profile brief]\nrole_arn = r\nsource_profile = x\n"
      "duration_seconds = 1\n"
      "[profile mfa]\nrole_arn = r\nmfa_serial = arn:mfa\n"
      "source_profile = x\n"
      "[profile sso]\nsso_session = corp\n");
  const std::pair<const char*, const char*> rows[] = {
      {"circle", "source_profile 'back': its source_profile 'circle' leads"},
      {"self", "leads back"},
      {"both", "keep one"},
      {"neither", "neither source_profile nor"},
      {"lost", "no AWS profile 'nobody'"},
      {"bare", "'empty' has no credentials"},
      {"brief", "duration_seconds"},
      {"mfa", "botocore"},
      {"sso", "export-credentials --profile sso"},
  };
  for (const auto& [profile, says] : rows) {
    EXPECT_THAT(error_of(profile).message(), HasSubstr(says));
  }
  EXPECT_TRUE(script_.asked.empty());
  const auto nothing = ask("empty");
  ASSERT_TRUE(nothing);
  EXPECT_FALSE(nothing->found);
  EXPECT_THAT(nothing->why_not, HasSubstr("profile 'empty' has none in"));
}

TEST_F(ProfileLinkTest, ProcessAndHelperAreRunWithoutAShell) {
  config(
      "[profile process]\n"
      "credential_process = /bin/echo '{\"Version\":1,\"AccessKeyId\":\"A $X\","
      "\"SecretAccessKey\":\"PLANTED\"}'\n"
      "[profile good]\n"
      "credential_process = /bin/echo '{\"Version\":1,\"AccessKeyId\":\"A$X\","
      "\"SecretAccessKey\":\"PLANTED\"}'\n"
      "[profile sso]\nsso_session = corp\n"
      "[profile mfa]\nrole_arn = r\nmfa_serial = arn:mfa\n"
      "source_profile = sso\n");

  EXPECT_THAT(error_of("process").message(), HasSubstr("blank"));
  EXPECT_EQ(ask("good")->found->keys.access_key_id, "A$X");
  const std::string helper =
      "/bin/sh -c 'echo \"{\\\"Version\\\":1,\\\"AccessKeyId\\\":\\\"$1$2\\\","
      "\\\"SecretAccessKey\\\":\\\"PLANTED\\\"}\"' sh";
  EXPECT_EQ(ask("sso", {}, helper)->found->keys.access_key_id, "--profilesso");
  EXPECT_EQ(ask("mfa", {{"LEAT_CREDENTIAL_HELPER", helper}})
                ->found->keys.access_key_id,
            "--profilemfa");
}

TEST_F(ProfileLinkTest, FilesAreReadAnewEachTime) {
  credentials("[p]\naws_access_key_id = A\naws_secret_access_key = S\n");
  const CredentialTools tools = world_.tools();
  const auto link = profile_link({.profile = "p", .region = {}, .helper = {}},
                                 *load_aws_profile("p", tools.env), tools);
  EXPECT_TRUE(link->is_local());
  EXPECT_EQ(link->fetch({})->found->keys.access_key_id, "A");

  credentials("[p]\naws_access_key_id = B\naws_secret_access_key = S\n");

  EXPECT_EQ(link->fetch({})->found->keys.access_key_id, "B");
}

TEST_F(ProfileLinkTest, RefusalsOfStsAreTypedAndHideWhatWasSent) {
  credentials(
      "[source]\naws_access_key_id = A\naws_secret_access_key = PLANTED1\n"
      "aws_session_token = PLANTED2\n");
  config(
      "[profile role]\nrole_arn = arn:r\nsource_profile = source\n"
      "external_id = PLANTED3\n");
  struct Row {
    int status;
    std::string body;
    ErrorCode code;
    const char* says;
  };
  const Row rows[] = {
      {403, sts_refusal("AccessDenied", "PLANTED1 PLANTED2 PLANTED3 may not"),
       ErrorCode::kPermissionDenied, "(hidden) (hidden) (hidden) may not"},
      {403, sts_refusal("ExpiredToken", "old"), ErrorCode::kPermissionDenied,
       "renew it"},
      {400, sts_refusal("Throttling", "slow"), ErrorCode::kThrottled, "slow"},
      {400, sts_refusal("IDPCommunicationError", "idp"),
       ErrorCode::kUnavailable, "idp"},
      {403, "PLANTED1", ErrorCode::kPermissionDenied, "HTTP 403"},
      {200, "PLANTED1", ErrorCode::kPermissionDenied, "AWS_ENDPOINT_URL_STS"},
      {200, "<a><b><Credentials/></b></a>", ErrorCode::kPermissionDenied,
       "AWS_ENDPOINT_URL_STS"},
  };
  for (const Row& row : rows) {
    script_.answer(row.status, row.body);
    const Error error = error_of("role");
    EXPECT_EQ(error.code(), row.code) << row.body;
    EXPECT_THAT(error.message(),
                AllOf(HasSubstr("assuming arn:r"), HasSubstr(row.says)));
  }
}

TEST_F(ProfileLinkTest, WebIdentityReadsItsTokenAnewAndSendsItUnsigned) {
  const std::string file = world_.write("jwt", "PLANTEDJWT1\n");
  config("[profile web]\nrole_arn = arn:w\nweb_identity_token_file = " + file +
         "\n");
  const CredentialTools tools =
      world_.tools({{"AWS_WEB_IDENTITY_TOKEN_FILE", file},
                    {"AWS_ROLE_ARN", "arn:e"},
                    {"AWS_ENDPOINT_URL_STS", "http://localhost:9/sts"}});
  const auto link =
      environment_web_identity(sts_place("", AwsProfile{}, tools.env), tools);
  for (int i = 0; i < 3; ++i) {
    script_.answer(200, sts_grant("AssumeRoleWithWebIdentity"));
  }

  ASSERT_TRUE(link->fetch({})->found);
  world_.write("jwt", "PLANTEDJWT2");
  ASSERT_TRUE(link->fetch({})->found);
  ASSERT_TRUE(ask("web")->found);

  EXPECT_EQ(script_.asked.at(0).url, "http://localhost:9/sts/");
  EXPECT_EQ(script_.bodies.at(0),
            "Action=AssumeRoleWithWebIdentity&RoleArn=arn%3Ae&"
            "RoleSessionName=leat-1709208000&Version=2011-06-15&"
            "WebIdentityToken=PLANTEDJWT1");
  EXPECT_THAT(script_.bodies.at(1), HasSubstr("PLANTEDJWT2"));
  EXPECT_EQ(HttpScript::header(script_.asked.at(0), "Authorization"), "(none)");
  EXPECT_EQ(script_.asked.at(2).url, "https://sts.us-east-1.amazonaws.com/");

  script_.answer(400,
                 sts_refusal("InvalidIdentityToken", "PLANTEDJWT2 is bad"));
  EXPECT_THAT(link->fetch({}).error().message(),
              AllOf(HasSubstr("(hidden) is bad"), Not(HasSubstr("PLANTED"))));
  std::filesystem::remove(file);
  EXPECT_THAT(link->fetch({}).error().message(), HasSubstr("not there"));
  world_.write("jwt", std::string(20'001, 'x'));
  EXPECT_EQ(link->fetch({}).error().code(), ErrorCode::kInvalidArgument);
}

TEST_F(ProfileLinkTest, StsIsWhereTheSettingsSay) {
  const auto place = [&](const Variables& variables,
                         std::string_view region = "") {
    const auto found = sts_place(region, AwsProfile{}, fake_env(variables));
    return found ? found->endpoint.url() + " " + found->region
                 : found.error().message();
  };

  EXPECT_EQ(place({}), "https://sts.us-east-1.amazonaws.com us-east-1");
  EXPECT_EQ(place({{"AWS_REGION", "cn-north-1"}}),
            "https://sts.cn-north-1.amazonaws.com.cn cn-north-1");
  EXPECT_EQ(place({{"AWS_REGION", "eu-west-1"}}, "eu-west-2"),
            "https://sts.eu-west-2.amazonaws.com eu-west-2");
  const Variables legacy = {{"AWS_STS_REGIONAL_ENDPOINTS", "legacy"}};
  EXPECT_EQ(place(legacy, "eu-west-1"), "https://sts.amazonaws.com us-east-1");
  EXPECT_EQ(place(legacy, "eu-south-1"),
            "https://sts.eu-south-1.amazonaws.com eu-south-1");
  EXPECT_EQ(place({{"AWS_ENDPOINT_URL", "http://all"},
                   {"AWS_ENDPOINT_URL_STS", "http://sts:1/"}}),
            "http://sts:1 us-east-1");
  EXPECT_EQ(place({{"AWS_ENDPOINT_URL", "http://all"}}),
            "http://all us-east-1");
  EXPECT_THAT(place({{"AWS_REGION", "evil/"}}), HasSubstr("region"));
}

}  // namespace
}  // namespace leat
