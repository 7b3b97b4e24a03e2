#include "leat/store/s3/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "leat/store/s3/credentials/testing/aws_answers.h"
#include "leat/store/testing/http_server.h"

namespace leat {
namespace {

using leat::testing::LinkWorld;
using leat::testing::ScriptedServer;
using leat::testing::ServerReply;
using leat::testing::ServerRequest;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Level = Diagnosis::Level;

Diagnosis diagnose(LinkWorld& world, leat::testing::Variables variables) {
  variables.try_emplace("HOME", world.home.string());
  variables.try_emplace("AWS_EC2_METADATA_DISABLED", "true");
  return diagnose_credentials({}, fake_env(variables), {});
}

TEST(DiagnosisTest, SaysWhichPlaceAnsweredAndWhyNotTheOthers) {
  LinkWorld world;
  world.write(".aws/credentials",
              "[default]\naws_access_key_id = AKPROFILE\n"
              "aws_secret_access_key = PLANTED\naws_session_token = PLANTED\n");

  const Diagnosis diagnosis = diagnose(world, {});

  EXPECT_EQ(diagnosis.level, Level::kGood);
  EXPECT_EQ(diagnosis.found,
            "profile 'default', key AKPROFILE, temporary; they do not say "
            "until when");
  EXPECT_THAT(
      diagnosis.details,
      ElementsAre("the environment: AWS_ACCESS_KEY_ID is not set",
                  HasSubstr("AWS_WEB_IDENTITY_TOKEN_FILE is not set"),
                  "profile 'default': used", "the container's role: not asked",
                  "the EC2 instance's role (IMDSv2): not asked"));
}

TEST(DiagnosisTest, SaysWhatFailedAndWhatToDo) {
  LinkWorld world;
  const Diagnosis nobody = diagnose(world, {});
  EXPECT_EQ(nobody.level, Level::kBad);
  EXPECT_THAT(nobody.details.back(), HasSubstr("AWS_EC2_METADATA_DISABLED"));
  EXPECT_THAT(nobody.remedy, Not(IsEmpty()));

  const Diagnosis half = diagnose(world, {{"AWS_ACCESS_KEY_ID", "A"}});
  EXPECT_EQ(half.level, Level::kBad);
  EXPECT_THAT(half.found, HasSubstr("set both or neither"));
  EXPECT_THAT(half.details.front(), HasSubstr("FAILED"));
}

TEST(DiagnosisTest, WarnsOfAnotherRegionAndOfNat) {
  NetworkFacts facts{.bucket = "ds",
                     .bucket_region = "eu-west-1",
                     .instance_region = "us-east-1",
                     .vpc_id = "vpc-1"};
  const auto warned = judge_network(facts);
  ASSERT_EQ(warned.size(), 2u);
  EXPECT_EQ(warned[0].level, Level::kWarning);
  EXPECT_THAT(warned[0].remedy, HasSubstr("run in eu-west-1"));
  EXPECT_EQ(warned[1].level, Level::kWarning);
  EXPECT_THAT(warned[1].remedy, HasSubstr("Values=vpc-1"));

  facts.bucket_region = "us-east-1";
  facts.has_public_address = true;
  const auto good = judge_network(facts);
  ASSERT_EQ(good.size(), 1u);
  EXPECT_EQ(good[0].level, Level::kGood);
  facts.has_public_address = false;
  facts.is_endpoint_private = true;
  EXPECT_EQ(judge_network(facts).size(), 1u);
  facts.instance_region.clear();
  EXPECT_THAT(judge_network(facts), IsEmpty());
}

TEST(DiagnosisTest, FindsOutWhereBucketAndInstanceAre) {
  ScriptedServer server([](const ServerRequest& request) {
    ServerReply reply;
    if (request.target == "/latest/api/token") reply.body = "TOKEN";
    if (request.target == "/latest/meta-data/placement/region") {
      reply.body = "eu-central-1";
    }
    if (request.target == "/latest/meta-data/public-ipv4") reply.status = 404;
    if (request.target == "/latest/meta-data/mac") reply.body = "0e:00:01";
    if (request.target ==
        "/latest/meta-data/network/interfaces/macs/0e:00:01/vpc-id") {
      reply.body = "vpc-7";
    }
    if (request.target == "/ds") {
      reply.status = 403;
      reply.headers = {{"x-amz-bucket-region", "us-west-2"}};
    }
    return reply;
  });

  const auto facts = network_facts(
      "ds", {},
      fake_env({{"AWS_ENDPOINT_URL_S3", server.url()},
                {"AWS_EC2_METADATA_SERVICE_ENDPOINT", server.url()}}),
      {});

  ASSERT_TRUE(facts) << facts.error().message();
  EXPECT_EQ(facts->bucket_region, "us-west-2");
  EXPECT_EQ(facts->instance_region, "eu-central-1");
  EXPECT_EQ(facts->vpc_id, "vpc-7");
  EXPECT_FALSE(facts->has_public_address);
  EXPECT_TRUE(facts->is_endpoint_private) << "it is on this machine";
}

}  // namespace
}  // namespace leat
