#include "leat/store/layers/pace_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>

namespace leat {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::IsEmpty;

constexpr TimePoint kBegan{seconds(1)};

/// As a service that throttles all of them.
void throttle(PaceMemory::Hold state) {
  for (int i = 0; i < 100; ++i) {
    state->heard(true, kBegan, kBegan + milliseconds(10));
  }
}

/// Another process, which does this and then sleeps until it is killed.
class Process {
 public:
  explicit Process(const std::function<void()>& what) {
    std::array<int, 2> pipe{};
    EXPECT_EQ(::pipe(pipe.data()), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      what();
      (void)!::write(pipe[1], "d", 1);
      for (;;) ::pause();
    }
    char done = 0;
    EXPECT_EQ(::read(pipe[0], &done, 1), 1);
    ::close(pipe[0]);
    ::close(pipe[1]);
  }
  ~Process() {
    if (pid_ > 0) kill();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void kill() {
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, 0), nullptr, 0);
  }

 private:
  pid_t pid_ = 0;
};

class PaceMemoryTest : public ::testing::Test {
 protected:
  PaceMemoryTest() {
    std::string path = ::testing::TempDir() + "/leat-pace-XXXXXX";
    folder_ = std::string(::mkdtemp(path.data())) + "/paces";
  }
  ~PaceMemoryTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(std::filesystem::path(folder_).parent_path(),
                                ignored);
  }
  std::string file() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      return entry.path().string();
    }
    return {};
  }

  std::string folder_;
};

TEST_F(PaceMemoryTest, IsOfThisProcessAloneUnlessAFolderIsNamed) {
  const PaceMemory one;
  const PaceMemory other;
  throttle(one.hold());

  EXPECT_FALSE(one.is_shared());
  EXPECT_FALSE(PaceMemory("", "a").is_shared());
  EXPECT_TRUE(one.rate());
  EXPECT_FALSE(other.rate());
}

TEST_F(PaceMemoryTest, AnotherProcessSeesWhatOneHasFound) {
  const PaceMemory mine(folder_, "a");
  ASSERT_TRUE(mine.is_shared());

  const Process process([this] {
    static const PaceMemory theirs(folder_, "a");
    throttle(theirs.hold());
  });

  EXPECT_TRUE(mine.rate());
  EXPECT_EQ(mine.hold()->episodes(), 1u);
  EXPECT_FALSE(PaceMemory(folder_, "b").rate());
}

TEST_F(PaceMemoryTest, TheLastOneRemovesTheFile) {
  {
    const PaceMemory one(folder_, "a");
    {
      const PaceMemory other(folder_, "a");
      throttle(other.hold());
    }
    EXPECT_TRUE(one.rate());
    EXPECT_TRUE(PaceMemory(folder_, "a").rate());
  }
  EXPECT_THAT(file(), IsEmpty());
  EXPECT_FALSE(PaceMemory(folder_, "a").rate());
}

TEST_F(PaceMemoryTest, BeginsAnewWhatADeadProcessLeft) {
  {
    Process process([this] {
      static const PaceMemory theirs(folder_, "a");
      throttle(theirs.hold());
    });
    process.kill();
  }
  ASSERT_FALSE(file().empty());

  const PaceMemory mine(folder_, "a");

  EXPECT_TRUE(mine.is_shared());
  EXPECT_FALSE(mine.rate());
}

TEST_F(PaceMemoryTest, DoesNotWaitForAProcessThatDiedInItsHold) {
  const PaceMemory mine(folder_, "a");
  Process process([this] {
    static const PaceMemory theirs(folder_, "a");
    static const auto held = theirs.hold();
    for (int i = 0; i < 100; ++i) {
      held->heard(true, kBegan, kBegan + milliseconds(10));
    }
  });
  process.kill();

  EXPECT_EQ(mine.hold()->episodes(), 0u) << "half a change may be there";

  EXPECT_TRUE(mine.is_shared());
  throttle(mine.hold());
  EXPECT_TRUE(PaceMemory(folder_, "a").rate());
}

TEST_F(PaceMemoryTest, DoesNotWaitLongForAProcessThatStandsStillInItsHold) {
  const PaceMemory mine(folder_, "a");
  const Process process([this] {
    static const PaceMemory theirs(folder_, "a");
    static const auto held = theirs.hold();
  });
  const auto began = std::chrono::steady_clock::now();

  throttle(mine.hold());

  EXPECT_LT(std::chrono::steady_clock::now() - began, seconds(2));
  EXPECT_FALSE(mine.is_shared());
  EXPECT_TRUE(mine.rate());
}

TEST_F(PaceMemoryTest, BytesThatAreNoStateAreBegunAnew) {
  { const PaceMemory first(folder_, "a"); }
  std::string path;
  {
    const PaceMemory first(folder_, "a");
    path = file();
  }
  for (const std::size_t size : {0, 100, 4096, 9000}) {
    SCOPED_TRACE(size);
    std::ofstream(path) << std::string(size, '\xff');
    ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
    const PaceMemory mine(folder_, "a");
    EXPECT_EQ(mine.is_shared(), size <= 4096);
    EXPECT_FALSE(mine.rate());
    EXPECT_EQ(mine.hold()->take_turn(kBegan), kBegan);
    std::filesystem::remove(path);
  }
}

TEST_F(PaceMemoryTest, UsesNoFolderOrFileOfOthers) {
  std::filesystem::create_directories(folder_);
  ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
  EXPECT_FALSE(PaceMemory(folder_, "a").is_shared());

  ASSERT_EQ(::chmod(folder_.c_str(), 0700), 0);
  std::string path;
  {
    const PaceMemory mine(folder_, "a");
    ASSERT_TRUE(mine.is_shared());
    path = file();
  }
  std::ofstream(path) << "";
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  EXPECT_FALSE(PaceMemory(folder_, "a").is_shared());

  std::filesystem::remove(path);
  std::ofstream(folder_ + "/elsewhere") << "";
  std::filesystem::create_symlink(folder_ + "/elsewhere", path);
  EXPECT_FALSE(PaceMemory(folder_, "a").is_shared());
}

TEST_F(PaceMemoryTest, AFolderThatCannotBeMadeIsNoError) {
  const PaceMemory mine("/proc/none", "a");

  EXPECT_FALSE(mine.is_shared());
  throttle(mine.hold());
  EXPECT_TRUE(mine.rate());
}

}  // namespace
}  // namespace leat
