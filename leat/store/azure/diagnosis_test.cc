#include "leat/store/azure/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "leat/store/cloud/testing/link_world.h"

namespace leat {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Level = Diagnosis::Level;

Diagnosis diagnose(testing::LinkWorld& world, testing::Variables variables,
                   const AzureOptions& options = {}) {
  variables.try_emplace("AZURE_STORAGE_ACCOUNT_NAME", "acc");
  const auto found =
      diagnose_azure_access({.container = "container", .host = ""}, options,
                            world.tools(std::move(variables)), {});
  return found.value_or(Diagnosis{.check = "none"});
}

/// It is noon of 2024-02-29.
Diagnosis of_sas(testing::LinkWorld& world, const std::string& end) {
  return diagnose(world, {{"AZURE_STORAGE_SAS_TOKEN",
                           "?sv=2021-08-06" + end + "&sig=PLANTED%3D"}});
}

TEST(AzureDiagnosisTest, SaysWhenASasEnds) {
  testing::LinkWorld world;

  const Diagnosis good = of_sas(world, "&se=2024-03-01T13%3A30%3A00Z");
  EXPECT_EQ(good.level, Level::kGood);
  EXPECT_EQ(good.found, "a SAS, good for another 25 h 30 min, and not renewed");

  EXPECT_EQ(of_sas(world, "&se=9999-12-31T23:59:59Z").level, Level::kGood);

  const Diagnosis over = of_sas(world, "&se=2024-02-29T11:59:59Z");
  EXPECT_EQ(over.level, Level::kBad);
  EXPECT_EQ(over.found, "a SAS that has ended");
  EXPECT_THAT(over.remedy, HasSubstr("AZURE_STORAGE_SAS_TOKEN"));

  for (const char* none : {"", "&se=", "&se=soon", "&se"}) {
    const Diagnosis unknown = of_sas(world, none);
    EXPECT_EQ(unknown.level, Level::kGood);
    EXPECT_EQ(unknown.found, "a SAS; it does not say when it ends");
  }
}

TEST(AzureDiagnosisTest, NamesTheAccountOfAKeyAndNotTheKey) {
  testing::LinkWorld world;

  EXPECT_EQ(
      diagnose(world, {{"AZURE_STORAGE_ACCOUNT_KEY", "UExBTlRFRA=="}}).found,
      "the key of account acc");
  EXPECT_EQ(diagnose(world, {}, {.no_sign_request = true}).found,
            "none: not wanted (--no-sign-request)");
  EXPECT_EQ(diagnose(world, {{"AZURE_STORAGE_ACCOUNT_KEY", "!"}}).check, "none")
      << "opening the store says that it is no key";
  EXPECT_TRUE(world.script.asked.empty());
}

TEST(AzureDiagnosisTest, AsksForAToken) {
  testing::LinkWorld world;
  const testing::Variables application = {{"AZURE_TENANT_ID", "t"},
                                          {"AZURE_CLIENT_ID", "c"},
                                          {"AZURE_CLIENT_SECRET", "PLANTED"}};
  world.script.answer(200, R"({"access_token":"PLANTED","expires_in":3600})");
  world.script.answer(401, R"({"error":"invalid_client"})");

  EXPECT_EQ(diagnose(world, application).found,
            "the application's secret, good for another 1h00m00s, then "
            "renewed");
  const Diagnosis refused = diagnose(world, application);
  EXPECT_EQ(refused.level, Level::kBad);
  EXPECT_THAT(refused.found, HasSubstr("invalid_client"));
  EXPECT_THAT(refused.found, Not(HasSubstr("PLANTED")));
}

}  // namespace
}  // namespace leat
