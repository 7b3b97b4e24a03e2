#include "leat/runtime/start_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <string>

namespace leat {
namespace {

TEST(StartThreadTest, WaitsForThreadsToEndAndThenThrowsTheRemedy) {
  const std::system_error none(EAGAIN, std::generic_category());
  ThreadPatience patience(std::chrono::milliseconds(0));
  int waits = 0;
  std::string said;
  while (said.empty() && waits < 1000) {
    try {
      patience.failed(none);
      ++waits;
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.code().value(), EAGAIN);
      said = error.what();
    }
  }
  EXPECT_GE(waits, 10);
  EXPECT_NE(said.find("ulimit -u"), std::string::npos) << said;
}

TEST(StartThreadTest, OtherFailuresAreThrownAtOnce) {
  ThreadPatience patience;
  EXPECT_THROW(
      patience.failed(std::system_error(EINVAL, std::generic_category())),
      std::system_error);
}

TEST(StartThreadTest, StartsWhatItIsGiven) {
  std::atomic<int> ran = 0;
  {
    std::vector<std::jthread> pool;
    EXPECT_TRUE(try_start_thread(pool, [&] { ++ran; }));
    const std::jthread one = start_thread([&] { ++ran; });
  }
  EXPECT_EQ(ran, 2);
}

}  // namespace
}  // namespace leat
