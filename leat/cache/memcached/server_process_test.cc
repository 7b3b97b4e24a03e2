// A memcached of our own: that it runs, and that none is left behind.

#include "leat/cache/memcached/server_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

namespace leat {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr auto kServerPatience = 20s;

/// False once the process is gone, or a corpse that its parent (Z), or the
/// kernel (X), has not buried yet.
bool is_running(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(file, text)) return false;
  const char state = text.at(text.rfind(')') + 2);
  return state != 'Z' && state != 'X';
}

std::string command_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline");
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ServerProcessTest, RunsUntilItIsDestroyed) {
  auto server =
      ServerProcess::start({.patience = kServerPatience}, process_env());
  ASSERT_TRUE(server) << server.error().message();
  const pid_t pid = (*server)->pid();
  EXPECT_THAT(command_of(pid), HasSubstr("memcached"));
  EXPECT_THAT((*server)->name(), HasSubstr("127.0.0.1:"));

  server->reset();

  EXPECT_FALSE(is_running(pid));
}

TEST(ServerProcessTest, EndsWhenItsOwnerIsKilled) {
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  const pid_t owner = fork();
  if (owner == 0) {
    auto server =
        ServerProcess::start({.patience = kServerPatience}, process_env());
    const pid_t pid = server ? (*server)->pid() : 0;
    (void)!write(pipe_fds[1], &pid, sizeof(pid));
    pause();
    _exit(0);
  }
  pid_t pid = 0;
  ASSERT_EQ(read(pipe_fds[0], &pid, sizeof(pid)), ssize_t{sizeof(pid)});
  ASSERT_GT(pid, 0);
  EXPECT_TRUE(is_running(pid));

  kill(owner, SIGKILL);
  waitpid(owner, nullptr, 0);

  while (is_running(pid)) std::this_thread::yield();
  close(pipe_fds[0]);
  close(pipe_fds[1]);
}

// Then the kernel buries the child, and a wait for it finds none.
TEST(ServerProcessTest, EndsWhereSigchldIsIgnored) {
  const auto before = signal(SIGCHLD, SIG_IGN);
  auto server =
      ServerProcess::start({.patience = kServerPatience}, process_env());
  ASSERT_TRUE(server) << server.error().message();
  const pid_t pid = (*server)->pid();

  server->reset();

  EXPECT_FALSE(is_running(pid));
  signal(SIGCHLD, before);
}

TEST(ServerProcessTest, StartsAgainAtTheSameAddress) {
  auto server =
      ServerProcess::start({.patience = kServerPatience}, process_env());
  ASSERT_TRUE(server) << server.error().message();
  const pid_t first = (*server)->pid();
  const std::string name = (*server)->name();

  kill(first, SIGKILL);
  while ((*server)->pid() == first || (*server)->pid() == 0) {
    std::this_thread::yield();
  }

  const std::string port = name.substr(name.find(':') + 1);
  // The child is a copy of us until it has become memcached.
  while (!::testing::Matches(HasSubstr("-M"))(command_of((*server)->pid()))) {
    std::this_thread::yield();
  }
  EXPECT_THAT(command_of((*server)->pid()), HasSubstr(port));
}

TEST(ServerProcessTest, SaysHowToGetMemcached) {
  const auto server =
      ServerProcess::start({}, fake_env({{"PATH", "/nonexistent"}}));

  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().code(), ErrorCode::kNotFound);
  EXPECT_THAT(server.error().message(), HasSubstr("apt install memcached"));
}

TEST(ServerProcessTest, SaysWhyItDoesNotListen) {
  // An address of nobody (RFC 5737).
  const auto server = ServerProcess::start(
      {.address = "192.0.2.1", .patience = kServerPatience}, process_env());

  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().code(), ErrorCode::kUnavailable);
  EXPECT_THAT(server.error().message(), HasSubstr("192.0.2.1"));
  EXPECT_THAT(server.error().message(), HasSubstr("assign"));
}

class ServerFolderTest : public ::testing::Test {
 protected:
  ServerFolderTest() {
    std::string name = ::testing::TempDir() + "leat-folders-XXXXXX";
    base_ = mkdtemp(name.data());
  }
  ~ServerFolderTest() override { std::filesystem::remove_all(base_); }

  std::size_t folders() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(base_), {}));
  }

  std::string base_;
};

TEST_F(ServerFolderTest, WhatAKilledOwnerLeftGoesWhenTheNextServerStarts) {
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  const pid_t owner = fork();
  if (owner == 0) {
    const auto folder = ServerFolder::make(base_);
    if (folder) std::ofstream(folder->path + "/port") << "TCP INET: 1";
    (void)!write(pipe_fds[1], "x", 1);
    pause();
    _exit(0);
  }
  char there = 0;
  ASSERT_EQ(read(pipe_fds[0], &there, 1), 1);
  ServerFolder::sweep(base_);
  EXPECT_EQ(folders(), 1u);  // Its owner lives.
  kill(owner, SIGKILL);
  waitpid(owner, nullptr, 0);
  EXPECT_EQ(folders(), 1u);

  auto server = ServerProcess::start(
      {.patience = kServerPatience},
      fake_env({{"PATH", process_env()("PATH").value()}, {"TMPDIR", base_}}));

  ASSERT_TRUE(server) << server.error().message();
  EXPECT_EQ(folders(), 1u);  // The server's own.
  server->reset();
  EXPECT_EQ(folders(), 0u);
  close(pipe_fds[0]);
  close(pipe_fds[1]);
}

TEST_F(ServerFolderTest, WhatIsNotAServersStays) {
  std::filesystem::create_directory(base_ + "/leat-memcached-notes");
  std::ofstream(base_ + "/leat-memcached-notes/diary") << "mine";
  std::filesystem::create_directory(base_ + "/other");
  std::ofstream(base_ + "/leat-memcached-file") << "mine";

  ServerFolder::sweep(base_);

  EXPECT_TRUE(std::filesystem::exists(base_ + "/leat-memcached-notes/diary"));
  EXPECT_EQ(folders(), 3u);
}

TEST(ServerProcessTest, GetsNothingOfOurs) {
  setenv("LEAT_TEST_SECRET", "hunter2", 1);
  const auto server =
      ServerProcess::start({.patience = kServerPatience}, process_env());
  ASSERT_TRUE(server) << server.error().message();

  std::ifstream file("/proc/" + std::to_string((*server)->pid()) + "/environ");
  const std::string environment{std::istreambuf_iterator<char>(file), {}};

  EXPECT_THAT(environment, HasSubstr("MEMCACHED_PORT_FILENAME"));
  EXPECT_THAT(environment, ::testing::Not(HasSubstr("hunter2")));
}

}  // namespace
}  // namespace leat
