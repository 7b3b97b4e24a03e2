#include "leat/store/s3/credentials/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "leat/store/s3/credentials/credential_process.h"
#include "leat/store/s3/credentials/testing/aws_answers.h"

namespace leat {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(SplitCommandTest, SplitsAsAShellDoesAndDoesNothingElse) {
  using Words = std::vector<std::string>;
  const std::pair<const char*, Words> rows[] = {
      {"a b  c\t", {"a", "b", "c"}},
      {R"("a b" 'c d')", {"a b", "c d"}},
      {R"(a\ b "c\"d\e\\" 'e\f')", {"a b", R"(c"d\e\)", R"(e\f)"}},
      {"a '' b", {"a", "", "b"}},
      {"a$HOME `x` | ~ > y", {"a$HOME", "`x`", "|", "~", ">", "y"}},
      {"x\"y\"z", {"xyz"}},
  };
  for (const auto& [command, words] : rows) {
    const auto split = split_command(command);
    ASSERT_TRUE(split) << command;
    EXPECT_EQ(*split, words) << command;
  }
  for (const char* command : {"", "  ", "a 'b", "a \"b", "a \\", "'' b"}) {
    EXPECT_FALSE(split_command(command)) << command;
  }
}

Result<ProcessOutput> run(const std::string& script,
                          Nanoseconds timeout = 20s) {
  return run_process({"/bin/sh", "-c", script}, {.timeout = timeout}, {});
}

TEST(RunProcessTest, TakesOutputErrorsAndStatusApart) {
  const auto ran = run("echo out; echo err >&2; cat; exit 3");

  ASSERT_TRUE(ran) << ran.error().message();
  EXPECT_EQ(ran->output, "out\n");
  EXPECT_EQ(ran->errors, "err\n");
  EXPECT_EQ(ran->exit_status, 3);
  EXPECT_EQ(run("kill -9 $$")->exit_status, 137);
}

TEST(RunProcessTest, TakesNoMoreTimeOrBytesThanAllowed) {
  EXPECT_EQ(run("exec sleep 60", 50ms).error().code(),
            ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(run("exec cat /dev/zero").error().code(),
            ErrorCode::kResourceExhausted);
  EXPECT_EQ(run("exec cat /dev/zero >&2", 200ms).error().code(),
            ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(run("exec >&- 2>&-; exec sleep 60", 50ms).error().code(),
            ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(
      run_process({"/no/such/program"}, {.timeout = 1s}, {}).error().code(),
      ErrorCode::kInvalidArgument);
}

TEST(RunProcessTest, DoesNotWaitForWhatTheProgramLeftBehind) {
  const auto ran = run("sleep 60 & echo done");

  ASSERT_TRUE(ran) << ran.error().message();
  EXPECT_EQ(ran->output, "done\n");
}

TEST(RunProcessTest, EndsWhenStopped) {
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });

  const auto ran =
      run_process({"sleep", "60"}, {.timeout = 60s}, stop.get_token());

  EXPECT_EQ(ran.error().code(), ErrorCode::kCancelled);
}

Result<TimedCredentials> ask(const std::string& script) {
  testing::LinkWorld world;
  return ask_process({"/bin/sh", "-c", script}, world.tools(), {});
}

TEST(CredentialProcessTest, ReadsVersion1) {
  testing::LinkWorld world;
  const auto found = ask_process(
      {"/bin/echo",
       R"({"Version":1,"AccessKeyId":"A","SecretAccessKey":"S",)"
       R"("SessionToken":"T","Expiration":"2024-02-29T13:00:00+00:00"})"},
      world.tools(), {});

  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->keys.access_key_id, "A");
  EXPECT_EQ(found->keys.session_token, "T");
  EXPECT_EQ(world.left(*found), 1h);
  const auto lasting = ask_process(
      {"/bin/echo", R"({"Version":1,"AccessKeyId":"A","SecretAccessKey":"S"})"},
      world.tools(), {});
  ASSERT_TRUE(lasting);
  EXPECT_FALSE(lasting->expires_at);
}

TEST(CredentialProcessTest, SaysWhatIsWrongAndShowsNoOutput) {
  struct Row {
    const char* script;
    const char* says;
  };
  const Row rows[] = {
      {"echo PLANTEDSECRET", "no JSON"},
      {"echo '[\"PLANTEDSECRET\"]'", "no JSON"},
      {"echo '{\"SecretAccessKey\":\"PLANTEDSECRET\"}'", "Version"},
      {"echo '{\"Version\":1,\"SecretAccessKey\":\"PLANTEDSECRET\"}'",
       "AccessKeyId"},
      {"echo '{\"Version\":1,\"AccessKeyId\":\"A\",\"SecretAccessKey\":"
       "\"PLANTED SECRET\"}'",
       "blank"},
      {"echo '{\"Version\":1,\"AccessKeyId\":\"A\",\"SecretAccessKey\":"
       "\"PLANTEDSECRET\",\"Expiration\":\"PLANTED\"}'",
       "Expiration"},
      {"echo PLANTEDSECRET; echo first >&2; echo 'login with "
       "PLANTEDSECRETKEYOF40CHARACTERS expired' >&2; exit 7",
       "status 7: login with (hidden) expired"},
      {"head -c 100000 /dev/zero", "prints more than"},
  };
  for (const Row& row : rows) {
    const auto found = ask(row.script);

    ASSERT_FALSE(found) << row.script;
    EXPECT_EQ(found.error().code(), ErrorCode::kPermissionDenied);
    EXPECT_THAT(found.error().message(),
                AllOf(HasSubstr(row.says), Not(HasSubstr("PLANTED"))));
  }
}

}  // namespace
}  // namespace leat
