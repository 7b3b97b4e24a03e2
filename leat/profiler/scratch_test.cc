#include "leat/profiler/scratch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "leat/profiler/child.h"

namespace leat {
namespace {

using ::testing::HasSubstr;
using Path = std::filesystem::path;
using std::chrono_literals::operator""s;

std::string content_of(const Path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class ScratchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(run_);
    std::filesystem::create_directories(project_ / "inner");
    std::ofstream(project_ / "kept") << "before";
    if (auto can = check_scratch(folders_, run_, {}); !can) {
      GTEST_SKIP() << can.error().message();
    }
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  /// The status of a shell script that runs in the scratch layer.
  int run(const std::string& script) {
    std::vector<std::string> words =
        scratch_words(folders_, run_, ::geteuid() == 0);
    for (const char* word : {"sh", "-ec"}) words.emplace_back(word);
    words.push_back("cd \"$0\"; " + script);
    words.push_back(project_.string());
    words.push_back(run_.string());
    auto child = Child::start(words, run_ / "log");
    EXPECT_TRUE(child);
    const auto status = child->wait(30s, {});
    EXPECT_TRUE(status) << content_of(run_ / "log");
    return status ? *status : -1;
  }

  const Path root_ = std::filesystem::temp_directory_path() /
                     ("leat_scratch_test." + std::to_string(::getpid()));
  const Path run_ = root_ / "run";
  const Path project_ = root_ / "it's a project";
  const std::vector<Path> folders_ = {project_, project_ / "inner"};
};

TEST_F(ScratchTest, WhatIsWrittenIsSeenInsideAndNotAfter) {
  const int status = run(
      "test \"$(cat kept)\" = before; echo after > kept; echo new > inner/new; "
      "rm -r inner; test \"$(cat kept)\" = after; echo told > \"$1/told\"");

  EXPECT_EQ(status, 0) << content_of(run_ / "log");
  EXPECT_EQ(content_of(project_ / "kept"), "before");
  EXPECT_TRUE(std::filesystem::is_empty(project_ / "inner"));
  EXPECT_EQ(content_of(run_ / "told"), "told\n");
}

/// Gives this process its own view of the mounts, so that nothing stays behind;
/// false if the kernel does not let us.
bool mounts_for_itself(const Path& folder) {
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("tmpfs", folder.c_str(), "tmpfs", 0, nullptr) == 0;
}

TEST_F(ScratchTest, FileSystemsMountedBelowAreCoveredToo) {
  const Path mounted = project_ / "mounted disk";
  std::filesystem::create_directory(mounted);
  if (!mounts_for_itself(mounted)) GTEST_SKIP() << "nothing can be mounted";
  std::ofstream(mounted / "kept") << "before";
  const Path deeper = mounted / "deeper";
  std::filesystem::create_directory(deeper);
  ASSERT_EQ(::mount("tmpfs", deeper.c_str(), "tmpfs", 0, nullptr), 0);
  std::ofstream(deeper / "kept") << "before";
  std::ofstream(project_ / "place") << "";
  ASSERT_EQ(::mount((project_ / "kept").c_str(), (project_ / "place").c_str(),
                    nullptr, MS_BIND, nullptr),
            0);

  const int status = run(
      "cd 'mounted disk'; test \"$(cat kept)\" = before; echo after > kept; "
      "test \"$(cat kept)\" = after; echo new > new; "
      "test \"$(cat deeper/kept)\" = before; echo after > deeper/kept; "
      "test \"$(cat ../place)\" = before; "
      "if echo after 2>/dev/null >> ../place; then exit 5; fi");

  EXPECT_EQ(status, 0) << content_of(run_ / "log");
  EXPECT_EQ(content_of(mounted / "kept"), "before");
  EXPECT_FALSE(std::filesystem::exists(mounted / "new"));
  EXPECT_EQ(content_of(deeper / "kept"), "before");
  EXPECT_EQ(content_of(project_ / "kept"), "before");
  for (const Path& path : {project_ / "place", deeper, mounted}) {
    EXPECT_EQ(::umount(path.c_str()), 0);
  }
}

TEST_F(ScratchTest, WhoIsNotRootIsToldWhatIsMountedInTheFolder) {
  const Path mounted = project_ / "inner";
  if (::geteuid() != 0 || !mounts_for_itself(mounted)) {
    GTEST_SKIP() << "nothing can be mounted";
  }
  constexpr ::uid_t kNobody = 65534;
  ASSERT_EQ(::chown(run_.c_str(), kNobody, kNobody), 0);
  std::filesystem::remove(run_ / "scratch.log");
  ASSERT_EQ(::seteuid(kNobody), 0);

  const auto refused = check_scratch(folders_, run_, {});

  ASSERT_EQ(::seteuid(0), 0);
  ::umount(mounted.c_str());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(),
              HasSubstr("inner is mounted in it: run as root"));
}

TEST_F(ScratchTest, KeepsTheFolderAndTheStatusOfTheCommand) {
  EXPECT_EQ(run("exit 7"), 7);
}

TEST(ScratchRefusalTest, AFolderThatHoldsTheRunsOwnCannotBeCovered) {
  const auto refused =
      check_scratch(std::vector<Path>{"/tmp"}, "/tmp/leat-profile", {});

  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("TMPDIR"));
}

}  // namespace
}  // namespace leat
