#include "leat/index/catalogue_folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace leat {
namespace {

class CatalogueFolderTest : public ::testing::Test {
 protected:
  CatalogueFolderTest() {
    root_ = std::filesystem::path(::testing::TempDir()) /
            ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_ / "tmp");
    std::ofstream(root_ / "file") << "not a folder";
  }
  ~CatalogueFolderTest() override { std::filesystem::remove_all(root_); }

  std::string path(const std::string& name) const {
    return (root_ / name).string();
  }

  /// Below a file nothing can be made, not even by root.
  Env env_without_home() const {
    return fake_env({{"HOME", path("file")}, {"TMPDIR", path("tmp")}});
  }

  std::string temporary() const {
    return path("tmp") + fmt::format("/leat-{}", ::geteuid());
  }

  std::filesystem::path root_;
};

TEST_F(CatalogueFolderTest, IsTheUsersWhereThatCanBeWritten) {
  const Env env = fake_env({{"HOME", path("home")}, {"TMPDIR", path("tmp")}});

  EXPECT_EQ(catalogue_folder(env), path("home") + "/.cache/leat");
  EXPECT_FALSE(std::filesystem::exists(temporary()));
}

TEST_F(CatalogueFolderTest, IsTemporaryWhereTheHomeCannotBeWritten) {
  EXPECT_EQ(catalogue_folder(env_without_home()), temporary());

  struct stat info {};
  ASSERT_EQ(::stat(temporary().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST_F(CatalogueFolderTest, IsTemporaryInAFunctionWhichHasNoHome) {
  EXPECT_EQ(catalogue_folder(fake_env({{"TMPDIR", path("tmp")}})),
            std::nullopt);
  EXPECT_EQ(catalogue_folder(fake_env(
                {{"TMPDIR", path("tmp")}, {"AWS_LAMBDA_FUNCTION_NAME", "f"}})),
            temporary());
}

TEST_F(CatalogueFolderTest, IsTheOneThatTheUserNamedEvenIfItCannotBeWritten) {
  const Env env =
      fake_env({{"LEAT_CACHE_DIR", path("file/own")}, {"TMPDIR", path("tmp")}});

  EXPECT_EQ(catalogue_folder(env), path("file/own"));
}

TEST_F(CatalogueFolderTest, IsNotAFolderThatOthersMadeOrCanWrite) {
  std::filesystem::create_directory_symlink(root_, temporary());
  EXPECT_EQ(catalogue_folder(env_without_home()),
            path("file") + "/.cache/leat");

  std::filesystem::remove(temporary());
  std::filesystem::create_directory(temporary());
  ::chmod(temporary().c_str(), 0777);
  EXPECT_EQ(catalogue_folder(env_without_home()),
            path("file") + "/.cache/leat");
}

}  // namespace
}  // namespace leat
