// A file that is written anew is the old one or the new one, and no half.
#include "leat/engine/read_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <iterator>
#include <string>

namespace leat {
namespace {

using ::testing::HasSubstr;

class WriteTextTest : public ::testing::Test {
 protected:
  WriteTextTest() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "leat-text-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~WriteTextTest() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }
  std::ptrdiff_t files() const {
    return std::distance(std::filesystem::directory_iterator(folder_), {});
  }
  static std::string read(const std::string& path) {
    auto text = read_text(path, 1 << 20);
    return text ? *std::move(text) : text.error().message();
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(WriteTextTest, OnAFullDiskTheOldFileStays) {
  ASSERT_TRUE(write_text(path("page.html"), "of last week"));
  auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit tight = {.rlim_cur = 1000, .rlim_max = limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);

  const Result<void> done =
      write_text(path("page.html"), std::string(100000, 'x'));

  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, before);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message(), HasSubstr("page.html cannot be written"));
  EXPECT_EQ(read(path("page.html")), "of last week");
  EXPECT_EQ(files(), 1);
}

TEST_F(WriteTextTest, ALinkStaysOne) {
  ASSERT_TRUE(write_text(path("page.html"), "of last week"));
  std::filesystem::create_symlink(path("page.html"), path("latest.html"));

  ASSERT_TRUE(write_text(path("latest.html"), "new"));

  EXPECT_TRUE(std::filesystem::is_symlink(path("latest.html")));
  EXPECT_EQ(read(path("page.html")), "new");
  EXPECT_EQ(files(), 2);
}

}  // namespace
}  // namespace leat
