// A file that is written anew is the old one or the new one, and no half.
#include "leat/engine/read_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

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

/// Until its end, a superuser is nobody, whom a file's mode binds.
class Unprivileged {
 public:
  Unprivileged() {
    if (was_root_) is_so_ = ::seteuid(kSomeUser) == 0;
  }
  ~Unprivileged() {
    if (!was_root_) return;
    EXPECT_EQ(::seteuid(0), 0);
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;

  bool is_so() const { return is_so_; }

 private:
  static constexpr uid_t kSomeUser = 65534;
  const bool was_root_ = ::geteuid() == 0;
  bool is_so_ = true;
};

TEST_F(WriteTextTest, AFileThatIsProtectedIsNotReplaced) {
  using std::filesystem::perms;
  const std::string page = path("page.html");
  ASSERT_TRUE(write_text(page, "of last week"));
  ASSERT_EQ(::chmod(page.c_str(), 0444), 0);
  std::filesystem::permissions(std::filesystem::path(page).parent_path(),
                               perms::all);

  {
    const Unprivileged user;
    if (!user.is_so()) {
      GTEST_SKIP() << "root without CAP_SETUID: it may write any file, and "
                      "cannot become a user for whom one is protected";
    }
    ASSERT_TRUE(write_text(path("other.html"), "new")) << "of the same folder";

    const Result<void> done = write_text(page, "new");

    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code(), ErrorCode::kPermissionDenied);
    EXPECT_THAT(done.error().message(), HasSubstr("page.html is protected"));
  }
  EXPECT_EQ(read(page), "of last week");
  EXPECT_EQ(files(), 2);
}

TEST_F(WriteTextTest, AFileKeepsItsMode) {
  const std::string page = path("page.html");
  ASSERT_TRUE(write_text(page, "of last week"));
  for (const mode_t mode : {0600, 0664}) {
    ASSERT_EQ(::chmod(page.c_str(), mode), 0);

    ASSERT_TRUE(write_text(page, "new"));

    struct stat info = {};
    ASSERT_EQ(::stat(page.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, mode);
  }
}

TEST_F(WriteTextTest, ADraftThatSomebodyLaidThereIsNotFollowed) {
  const std::string page = path("page.html");
  ASSERT_TRUE(write_text(path("victim"), "theirs"));
  std::filesystem::create_symlink(path("victim"),
                                  page + ".part-" + std::to_string(::getpid()));

  ASSERT_TRUE(write_text(page, "new"));

  EXPECT_EQ(read(path("victim")), "theirs");
  EXPECT_EQ(read(page), "new");
}

}  // namespace
}  // namespace leat
