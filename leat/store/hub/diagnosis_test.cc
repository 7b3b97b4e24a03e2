#include "leat/store/hub/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "leat/store/cloud/testing/link_world.h"

namespace leat {
namespace {

using ::testing::HasSubstr;

std::string found(testing::LinkWorld& world, testing::Variables variables,
                  const HubOptions& options = {}) {
  variables.try_emplace("HOME", world.home.string());
  const auto diagnosis =
      diagnose_hub_access(options, fake_env(std::move(variables)));
  return diagnosis ? diagnosis->found : "";
}

TEST(HubDiagnosisTest, SaysWhichTokenIsShown) {
  testing::LinkWorld world;
  EXPECT_THAT(found(world, {}), HasSubstr("HF_TOKEN is not set"));

  const std::string path = world.write(".cache/huggingface/token", "PLANTED\n");
  EXPECT_EQ(found(world, {}), "the token of " + path);
  EXPECT_EQ(found(world, {{"HF_TOKEN", "PLANTED"}}), "the token of HF_TOKEN");
  EXPECT_EQ(found(world, {{"HUGGING_FACE_HUB_TOKEN", "PLANTED"}}),
            "the token of HUGGING_FACE_HUB_TOKEN");
  EXPECT_THAT(found(world, {}, {.no_sign_request = true}),
              HasSubstr("--no-sign-request"));
}

TEST(HubDiagnosisTest, LeavesItToTheOpeningToSayWhatCannotBe) {
  testing::LinkWorld world;
  EXPECT_EQ(found(world, {{"HF_TOKEN", "a b"}}), "");
}

}  // namespace
}  // namespace leat
