// Secrets are planted in every place that gives credentials, in what refuses
// them and repeats what it was sent; then everything that comes out is
// searched: output, errors, logs at their most talkative, and every file that
// is left.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <vector>

#include "leat/store/s3/credentials/process.h"
#include "tests/credentials/credential_world.h"

namespace leat {
namespace {

#ifdef LEAT_PROGRAM
using leat::testing::kPlanted;
using leat::testing::Variables;

class SecretsTest : public ::testing::Test {
 protected:
  SecretsTest()
      : world_({.lifetime = std::chrono::hours(1),
                .epoch = std::chrono::milliseconds(240)}) {}

  /// Everything that `leat` says under these variables.
  std::string run(const std::vector<std::string>& arguments,
                  Variables variables) {
    variables.merge(world_.variables());
    std::vector<std::string> command = {
        "/usr/bin/env", "-i", "PATH=/usr/bin:/bin", "SPDLOG_LEVEL=leat=debug"};
    for (const auto& [name, value] : variables) {
      command.push_back(name + "=" + value);
    }
    command.emplace_back(LEAT_PROGRAM);
    command.insert(command.end(), arguments.begin(), arguments.end());
    const auto ran = run_process(
        command,
        {.timeout = std::chrono::seconds(60), .most_output_bytes = 1 << 20},
        {});
    EXPECT_TRUE(ran) << ran.error().message();
    return ran ? fmt::format("status {}\n{}{}", ran->exit_status, ran->output,
                             ran->errors)
               : "";
  }

  void expect_nothing_in_files() {
    std::size_t files = 0;
    const auto cache = world_.root() / "cache";
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(cache)) {
      if (!entry.is_regular_file()) continue;
      ++files;
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string text(std::istreambuf_iterator<char>(file), {});
      EXPECT_EQ(text.find(kPlanted), std::string::npos) << entry.path();
    }
    EXPECT_GE(files, 2u) << "a catalogue and the lock";
  }

  CredentialWorld world_;
};

TEST_F(SecretsTest, AreInNothingThatComesOutWhereAllIsWell) {
  const Variables rows[] = {
      {{"AWS_EC2_METADATA_DISABLED", "false"},
       {"AWS_EC2_METADATA_SERVICE_ENDPOINT", world_.issuer_url()}},
      {{"AWS_ENDPOINT_URL_STS", world_.issuer_url()},
       {"AWS_ROLE_ARN", "arn:r"},
       {"AWS_WEB_IDENTITY_TOKEN_FILE",
        world_.write("jwt", leat::testing::kWebIdentityToken)}},
      {{"AWS_CONTAINER_CREDENTIALS_FULL_URI", world_.issuer_url("/container")},
       {"AWS_CONTAINER_AUTHORIZATION_TOKEN",
        std::string(leat::testing::kContainerToken)}},
  };
  for (const Variables& variables : rows) {
    std::string said;
    for (const std::vector<std::string>& arguments :
         {std::vector<std::string>{"ls", "s3://data/train"},
          {"doctor", "s3://data/train"},
          {"doctor", "s3://data/train", "--json"},
          {"bench", "s3://data/train", "--json", "--global-batch-size",
           "16"}}) {
      said += run(arguments, variables);
    }

    EXPECT_NE(said.find("samples_per_second"), std::string::npos) << said;
    EXPECT_EQ(said.find(kPlanted), std::string::npos) << said;
  }
  EXPECT_GE(world_.issuer().given(), 12u);
  expect_nothing_in_files();
}

TEST_F(SecretsTest, AreInNothingThatComesOutWhereItFails) {
  world_.write(".aws/config",
               "[profile role]\nrole_arn = arn:r\nsource_profile = source\n"
               "[profile source]\naws_access_key_id = A\n"
               "aws_secret_access_key = PLANTEDSECRET\n"
               "aws_session_token = PLANTEDTOKENOFSOURCE\n"
               "[profile process]\ncredential_process = /bin/sh -c "
               "'echo PLANTEDOUTPUT; echo PLANTEDERRORWITHALONGNAME >&2; "
               "exit 1'\n"
               "[profile half]\naws_secret_access_key = PLANTEDHALF\n"
               "[profile wrong]\naws_access_key_id = A\n"
               "aws_secret_access_key = PLANTEDWRONG\n"
               "aws_session_token = PLANTEDWRONG\n");
  const std::string sts = world_.issuer_url();
  struct Row {
    Variables variables;
    const char* says;
  };
  const Row rows[] = {
      {{{"AWS_PROFILE", "role"}, {"AWS_ENDPOINT_URL_STS", sts}}, "HTTP 403"},
      {{{"AWS_PROFILE", "process"}}, "status 1"},
      {{{"AWS_PROFILE", "half"}}, "set both or neither"},
      {{{"AWS_PROFILE", "wrong"}}, "InvalidAccessKeyId"},
      {{{"AWS_WEB_IDENTITY_TOKEN_FILE", world_.write("jwt", "PLANTEDBADJWT")},
        {"AWS_ROLE_ARN", "arn:r"},
        {"AWS_ENDPOINT_URL_STS", sts}},
       "(hidden) is not good"},
      {{{"AWS_CONTAINER_CREDENTIALS_FULL_URI", world_.issuer_url("/container")},
        {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "PLANTEDBADTOKEN"}},
       "HTTP 403"},
      {{{"AWS_CONTAINER_CREDENTIALS_FULL_URI",
         "http://127.0.0.1:1/x?token=PLANTEDQUERY"}},
       "127.0.0.1"},
      {{{"AWS_ACCESS_KEY_ID", "A"}, {"AWS_SECRET_ACCESS_KEY", "PLANTED KEY"}},
       "blank"},
  };
  for (const Row& row : rows) {
    for (const char* command : {"ls", "doctor"}) {
      Variables variables = row.variables;
      variables.try_emplace("AWS_MAX_ATTEMPTS", "1");

      const std::string said = run({command, "s3://data/train"}, variables);

      EXPECT_NE(said.find("status 1\n"), std::string::npos) << said;
      EXPECT_NE(said.find(row.says), std::string::npos) << said;
      EXPECT_EQ(said.find(kPlanted), std::string::npos) << said;
    }
  }
}
#endif

}  // namespace
}  // namespace leat
