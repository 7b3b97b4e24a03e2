#include "leat/profiler/run_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "leat/profiler/child.h"

namespace leat {
namespace {

using Path = std::filesystem::path;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

bool goes(const Path& path) {
  for (int i = 0; i < 3000; ++i) {
    if (!std::filesystem::exists(path)) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

/// A process that makes a folder, starts `script` in it that holds it, and is
/// killed once `script` has written the file "began" there.
Path folder_of_a_killed_owner(const std::string& script) {
  std::array<int, 2> told{};
  EXPECT_EQ(::pipe(told.data()), 0);
  const pid_t owner = ::fork();
  if (owner == 0) {
    auto folder = RunFolder::make();
    if (!folder) ::_exit(1);
    const std::string name = folder->path().string();
    std::ofstream(folder->path() / "rank0.json") << "{}";
    auto child =
        Child::start({"sh", "-c", script, name}, folder->path() / "log",
                     ChildInput::kEmpty, folder->held());
    if (!child || ::write(told[1], name.data(), name.size()) < 0) ::_exit(1);
    ::pause();
    ::_exit(1);
  }
  std::array<char, 256> name{};
  const ssize_t size = ::read(told[0], name.data(), name.size());
  EXPECT_GT(size, 0);
  const Path folder(std::string(name.data(), static_cast<std::size_t>(size)));
  while (!std::filesystem::exists(folder / "began")) {
    std::this_thread::sleep_for(10ms);
  }
  ::kill(owner, SIGKILL);
  ::waitpid(owner, nullptr, 0);
  ::close(told[0]);
  ::close(told[1]);
  return folder;
}

TEST(RunFolderTest, IsGoneWithItsOwner) {
  Path path;
  {
    auto folder = RunFolder::make();
    ASSERT_TRUE(folder) << folder.error().message();
    path = folder->path();
    std::filesystem::create_directories(path / "tmp/inner");
    const RunFolder moved = *std::move(folder);
    EXPECT_TRUE(std::filesystem::exists(path / "tmp/inner"));
  }

  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(RunFolderTest, IsGoneAfterAnOwnerThatIsKilled) {
  EXPECT_TRUE(goes(folder_of_a_killed_owner("touch \"$0/began\"; sleep 1000")));
}

TEST(RunFolderTest, StaysUntilThoseWhoWriteIntoItHaveEnded) {
  // It takes some of the two seconds that it has to end, and writes then.
  const Path folder = folder_of_a_killed_owner(
      "trap 'sleep 0.5; mkdir -p \"$0/late\" && mkdir \"$0/later\"; exit' "
      "TERM; "
      "touch \"$0/began\"; while :; do sleep 0.01; done");

  EXPECT_TRUE(goes(folder)) << "it was made again";
  std::this_thread::sleep_for(1s);
  EXPECT_FALSE(std::filesystem::exists(folder)) << "it was made again";
}

TEST(RunFolderTest, ANewOneIsUsersOwnAndEmpty) {
  auto folder = RunFolder::make();
  ASSERT_TRUE(folder);

  EXPECT_TRUE(std::filesystem::is_empty(folder->path()));
  EXPECT_EQ(std::filesystem::status(folder->path()).permissions(),
            std::filesystem::perms::owner_all);
}

}  // namespace
}  // namespace leat
