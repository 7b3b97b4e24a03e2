#include "leat/runtime/trust.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace leat {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uid_t kSomebody = 4321;

class TrustTest : public ::testing::Test {
 protected:
  TrustTest() {
    std::string path = ::testing::TempDir() + "/leat-trust-XXXXXX";
    folder_ = ::mkdtemp(path.data());
  }
  ~TrustTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::string file(mode_t mode) const {
    const std::string path = folder_ + "/file";
    std::ofstream(path) << "bytes";
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }

  std::string folder_;
};

TEST_F(TrustTest, BelievesAFolderOfItsOwnAndOneThatIsNotThere) {
  EXPECT_THAT(distrust_of_folder(folder_), IsEmpty());
  ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
  EXPECT_THAT(distrust_of_folder(folder_), IsEmpty());
  EXPECT_THAT(distrust_of_folder(folder_ + "/none"), IsEmpty());
  EXPECT_TRUE(is_trusted_folder(folder_, "the cache"));
}

TEST_F(TrustTest, DistrustsAFolderThatOthersCanWriteAndSaysTheRemedy) {
  for (const mode_t mode : {0775, 0757, 0777, 01777}) {
    ASSERT_EQ(::chmod(folder_.c_str(), mode), 0);
    const std::string why = distrust_of_folder(folder_);
    EXPECT_THAT(why, HasSubstr(folder_));
    EXPECT_THAT(why, HasSubstr("others can write"));
    EXPECT_THAT(why, HasSubstr("chmod go-w"));
    EXPECT_FALSE(is_trusted_folder(folder_, "the cache"));
  }
}

TEST_F(TrustTest, SaysAFolderOnce) {
  ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
  ::testing::internal::CaptureStderr();

  EXPECT_FALSE(is_trusted_folder(folder_, "the cache's disk="));
  EXPECT_FALSE(is_trusted_folder(folder_, "the cache's disk="));

  const std::string said = ::testing::internal::GetCapturedStderr();
  const std::size_t first = said.find("the cache's disk= is not used");
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("is not used", first + 20), std::string::npos) << said;
}

TEST_F(TrustTest, DistrustsWhatIsOfAnotherUser) {
  const std::string path = file(0644);
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  ASSERT_EQ(::chown(path.c_str(), kSomebody, kSomebody), 0);
  ASSERT_EQ(::chown(folder_.c_str(), kSomebody, kSomebody), 0);

  EXPECT_THAT(distrust_of_folder(folder_), HasSubstr("user 4321 owns"));
  const auto opened = open_own_file(path, O_RDONLY);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(opened.error().message(), HasSubstr("user 4321 owns"));
}

TEST_F(TrustTest, OpensFilesThatNobodyElseCanWrite) {
  EXPECT_TRUE(open_own_file(file(0644), O_RDONLY));
  for (const mode_t mode : {0664, 0646, 0666}) {
    const auto opened = open_own_file(file(mode), O_RDONLY);
    ASSERT_FALSE(opened);
    EXPECT_THAT(opened.error().message(), HasSubstr("others can write"));
  }
}

TEST_F(TrustTest, OpensNothingThroughALink) {
  const std::string link = folder_ + "/link";
  ASSERT_EQ(::symlink(file(0600).c_str(), link.c_str()), 0);

  EXPECT_FALSE(open_own_file(link, O_RDONLY));
}

TEST_F(TrustTest, MakesFoldersForThisUserAlone) {
  const mode_t before = ::umask(0);
  ASSERT_TRUE(make_own_folder(folder_ + "/a/b/"));
  ASSERT_TRUE(make_own_folder(folder_ + "/a/b"));  // It is there.
  ::umask(before);

  EXPECT_THAT(distrust_of_folder(folder_ + "/a/b"), IsEmpty());
  EXPECT_FALSE(make_own_folder(file(0600)));
  EXPECT_FALSE(make_own_folder("/proc/none/b"));
}

}  // namespace
}  // namespace leat
