#include "leat/store/s3/credentials/chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "leat/store/s3/credentials/testing/aws_answers.h"

namespace leat {
namespace {

using leat::testing::json_credentials;
using leat::testing::LinkWorld;
using leat::testing::sts_grant;
using leat::testing::Variables;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Outcome = LinkReport::Outcome;

std::unique_ptr<CredentialChain> chain_of(LinkWorld& world,
                                          const Variables& variables,
                                          const std::string& profile = {}) {
  const CredentialTools tools = world.tools(variables);
  const auto loaded = load_aws_profile(profile, tools.env);
  EXPECT_TRUE(loaded) << loaded.error().message();
  return default_credential_chain(
      {.profile = profile, .region = {}, .helper = {}}, *loaded, tools);
}

/// Everything is there; each row takes away what won before.
TEST(CredentialChainTest, FollowsAwsOrder) {
  LinkWorld world;
  world.write(".aws/credentials",
              "[default]\naws_access_key_id = AKPROFILE\n"
              "aws_secret_access_key = S\n");
  Variables variables = {
      {"AWS_ACCESS_KEY_ID", "AKENV"},
      {"AWS_SECRET_ACCESS_KEY", "S"},
      {"AWS_WEB_IDENTITY_TOKEN_FILE", world.write("jwt", "JWT")},
      {"AWS_ROLE_ARN", "arn:r"},
      {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/x"}};
  const auto who = [&](const std::string& profile = {}) {
    const auto answer = chain_of(world, variables, profile)->fetch({});
    EXPECT_TRUE(answer) << answer.error().message();
    return answer->found->keys.access_key_id;
  };

  EXPECT_EQ(who(), "AKENV");
  EXPECT_EQ(who("default"), "AKPROFILE") << "named, so it is meant";
  variables.erase("AWS_ACCESS_KEY_ID");
  variables.erase("AWS_SECRET_ACCESS_KEY");
  world.script.answer(200, sts_grant("AssumeRoleWithWebIdentity"));
  EXPECT_EQ(who(), "ASIA2");
  variables.erase("AWS_WEB_IDENTITY_TOKEN_FILE");
  EXPECT_EQ(who(), "AKPROFILE");
  std::filesystem::remove_all(world.home / ".aws");
  world.script.answer(200, json_credentials());
  EXPECT_EQ(who(), "ASIA1");
  EXPECT_EQ(world.script.asked.back().url, "http://169.254.170.2/x");
  variables.erase("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  world.script.answer(200, "TOKEN");
  world.script.answer(200, "role");
  world.script.answer(200, json_credentials());
  EXPECT_EQ(who(), "ASIA1");
  EXPECT_THAT(world.script.asked.back().url, HasSubstr("169.254.169.254"));
}

TEST(CredentialChainTest, WhoAnsweredOnceIsAskedAloneFromThenOn) {
  LinkWorld world;
  const auto chain = chain_of(world, {});
  world.script.answer(200, "TOKEN");
  world.script.answer(200, "role");
  world.script.answer(200, json_credentials());
  ASSERT_TRUE(chain->fetch({}));
  world.write(".aws/credentials",
              "[default]\naws_access_key_id = OTHER\n"
              "aws_secret_access_key = S\n");

  world.script.answer(200, "TOKEN");
  world.script.answer(404);
  const auto answer = chain->fetch({});

  ASSERT_FALSE(answer) << "became " << answer->found->keys.access_key_id;
  EXPECT_EQ(answer.error().code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(answer.error().message(),
              AllOf(HasSubstr("IMDSv2"), HasSubstr("has none now")));
}

TEST(CredentialChainTest, WhoFailsEndsTheSearchAndEveryPlaceIsAccountedFor) {
  LinkWorld world;
  world.write(".aws/config", "[default]\ncredential_process = /bin/false\n");
  const auto chain = chain_of(world, {});

  const auto answer = chain->fetch({});

  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(answer.error().message(),
              AllOf(HasSubstr("AWS credentials of profile 'default'"),
                    HasSubstr("ends with status 1"),
                    HasSubstr("before that: the environment: AWS_ACCESS_KEY_ID "
                              "is not set; web identity")));
  std::vector<Outcome> outcomes;
  for (const LinkReport& report : chain->reports()) {
    outcomes.push_back(report.outcome);
  }
  EXPECT_THAT(outcomes, ElementsAre(Outcome::kNothing, Outcome::kNothing,
                                    Outcome::kFailed, Outcome::kNotAsked,
                                    Outcome::kNotAsked));
  EXPECT_TRUE(world.script.asked.empty());
}

TEST(CredentialChainTest, KnowsWhatTakesMoreThanFiles) {
  LinkWorld world;
  EXPECT_FALSE(*chain_of(world, {})->fetch_locally());
  const Variables off = {{"AWS_EC2_METADATA_DISABLED", "true"}};
  EXPECT_EQ(chain_of(world, off)->fetch_locally().error().code(),
            ErrorCode::kPermissionDenied);
  EXPECT_TRUE(chain_of(world, off)->is_local());
  EXPECT_TRUE(world.script.asked.empty());
}

}  // namespace
}  // namespace leat
