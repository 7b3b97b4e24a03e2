#include "leat/store/gcs/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "leat/store/cloud/testing/link_world.h"

namespace leat {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Level = Diagnosis::Level;

Diagnosis diagnose(testing::LinkWorld& world, testing::Variables variables,
                   const GcsOptions& options = {}) {
  const auto found = diagnose_gcs_access("bucket", options,
                                         world.tools(std::move(variables)), {});
  return found.value_or(Diagnosis{.check = "none"});
}

std::string write_login(testing::LinkWorld& world) {
  return world.write(
      "key.json",
      R"({"type":"authorized_user","client_id":"c","client_secret":"PLANTED",)"
      R"("refresh_token":"PLANTED"})");
}

TEST(GcsDiagnosisTest, NamesTheFileAndTheLifeOfItsToken) {
  testing::LinkWorld world;
  const std::string path = write_login(world);
  world.script.answer(200, R"({"access_token":"PLANTED","expires_in":3600})");

  const Diagnosis found =
      diagnose(world, {{"GOOGLE_APPLICATION_CREDENTIALS", path}});

  EXPECT_EQ(found.level, Level::kGood);
  EXPECT_EQ(found.found, path + ", good for another 1h00m00s, then renewed");
}

TEST(GcsDiagnosisTest, SaysThatTheTokenIsRefusedAndShowsNoSecret) {
  testing::LinkWorld world;
  const std::string path = write_login(world);
  world.script.answer(400, R"({"error":"invalid_grant"})");

  const Diagnosis found =
      diagnose(world, {{"GOOGLE_APPLICATION_CREDENTIALS", path}});

  EXPECT_EQ(found.level, Level::kBad);
  EXPECT_THAT(found.found, HasSubstr("invalid_grant"));
  EXPECT_THAT(found.found, Not(HasSubstr("PLANTED")));
  EXPECT_THAT(found.remedy, HasSubstr("docs/howto/clouds.md"));
}

TEST(GcsDiagnosisTest, AsksNobodyWhereItNeedNot) {
  testing::LinkWorld world;

  EXPECT_THAT(diagnose(world, {{"GS_ACCESS_KEY_ID", "GOOG1E"},
                               {"GS_SECRET_ACCESS_KEY", "PLANTED"}})
                  .found,
              HasSubstr("GOOG1E"));
  EXPECT_THAT(diagnose(world, {}, {.no_sign_request = true}).found,
              HasSubstr("--no-sign-request"));
  EXPECT_THAT(diagnose(world, {{"STORAGE_EMULATOR_HOST", "127.0.0.1:9"}}).found,
              HasSubstr("STORAGE_EMULATOR_HOST"));
  EXPECT_EQ(diagnose(world, {{"GS_ACCESS_KEY_ID", "GOOG1E"}}).check, "none")
      << "opening the store says that half a pair is set";
  EXPECT_TRUE(world.script.asked.empty());
}

}  // namespace
}  // namespace leat
