#include "leat/cache/exchange_folder.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "leat/cache/record_claims.h"
#include "leat/cache/segment_exchange.h"

namespace leat {
namespace {

class ExchangeFolderTest : public ::testing::Test {
 protected:
  ExchangeFolderTest() {
    std::string name = ::testing::TempDir() + "leat-sweep-XXXXXX";
    base_ = ::mkdtemp(name.data());
  }
  ~ExchangeFolderTest() override { std::filesystem::remove_all(base_); }

  /// The socket of a process that was killed: it is there, and nobody listens.
  std::string killed_in(const std::string& folder) {
    std::string path;
    EXPECT_TRUE(listen_in(folder, path));
    EXPECT_TRUE(std::filesystem::exists(path));
    return path;
  }

  std::string base_;
  SystemFileOps ops_;
};

TEST_F(ExchangeFolderTest, WhatAKilledJobLeftIsSweptByAnyLaterOne) {
  const std::string dead = base_ + "/leat-ram-dead";
  (void)killed_in(dead);
  (void)killed_in(dead);
  std::ofstream(dead + "/claims") << "";

  sweep_exchange_folders(base_, "leat-ram-", ops_);

  EXPECT_FALSE(std::filesystem::exists(dead));
}

TEST_F(ExchangeFolderTest, WhatALiveOneHasStays) {
  const std::string folder = base_ + "/leat-ram-live";
  const auto live = open_segment_exchange(folder, ops_);
  ASSERT_TRUE(live);
  const auto claims = RecordClaims::open(folder);
  ASSERT_TRUE(claims);
  const std::string dead = killed_in(folder);

  sweep_exchange_folders(base_, "leat-ram-", ops_);

  EXPECT_FALSE(std::filesystem::exists(dead));
  EXPECT_TRUE(std::filesystem::exists(folder + "/claims"));
  int sockets = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".sock") ++sockets;
  }
  EXPECT_EQ(sockets, 1);
}

TEST_F(ExchangeFolderTest, WhatIsNotOursAloneOrHasAnotherNameStays) {
  const std::string open_to_all = base_ + "/leat-ram-open";
  const std::string in_open = killed_in(open_to_all);
  ASSERT_EQ(::chmod(open_to_all.c_str(), 0755), 0);
  const std::string in_other = killed_in(base_ + "/someone");
  std::ofstream(base_ + "/leat-ram-file") << "mine";

  sweep_exchange_folders(base_, "leat-ram-", ops_);

  EXPECT_TRUE(std::filesystem::exists(in_open));
  EXPECT_TRUE(std::filesystem::exists(in_other));
  EXPECT_TRUE(std::filesystem::exists(base_ + "/leat-ram-file"));
}

TEST_F(ExchangeFolderTest, AFileThatNobodyKnowsKeepsItsFolder) {
  const std::string folder = base_ + "/leat-ram-notes";
  const std::string dead = killed_in(folder);
  std::ofstream(folder + "/notes.txt") << "mine";

  sweep_exchange_folders(base_, "leat-ram-", ops_);

  EXPECT_FALSE(std::filesystem::exists(dead));
  EXPECT_TRUE(std::filesystem::exists(folder + "/notes.txt"));
}

TEST_F(ExchangeFolderTest, OneThatOthersCanEnterIsNotUsed) {
  const std::string folder = base_ + "/leat-ram-open";
  ASSERT_EQ(::mkdir(folder.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(folder.c_str(), 0711), 0);
  std::string path;

  const auto listener = listen_in(folder, path);

  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code(), ErrorCode::kPermissionDenied);
  EXPECT_NE(listener.error().message().find("mode 0711; remove it"),
            std::string::npos)
      << listener.error().message();
}

}  // namespace
}  // namespace leat
