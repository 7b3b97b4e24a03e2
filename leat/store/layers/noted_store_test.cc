#include "leat/store/layers/noted_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "leat/store/testing/fake_store.h"

namespace leat::testing {
namespace {

class ReadableStore : public FakeStore {
 public:
  void read(ReadRequest, std::stop_token, ReadDone done) override { done({}); }
};

class NotedStoreTest : public ::testing::Test {
 protected:
  NotedStoreTest() { std::filesystem::create_directories(notes_); }
  ~NotedStoreTest() override { std::filesystem::remove_all(notes_); }

  static int reads(NotedStore& store, const std::string& key) {
    std::array<std::byte, 1> bytes{};
    int done = 0;
    store.read({.object = {.key = key}, .into = bytes}, {},
               [&](const Result<void>& result) { done += result ? 1 : 0; });
    return done;
  }
  std::string notes() const {
    std::ifstream file(notes_ / ("opened-" + std::to_string(::getpid())));
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const std::filesystem::path notes_ =
      std::filesystem::path(::testing::TempDir()) /
      ("leat_noted_store_test." + std::to_string(::getpid()));
};

TEST_F(NotedStoreTest, EachFileThatIsReadIsNotedOnce) {
  NotedStore store(std::make_unique<ReadableStore>(), "/data", notes_);

  EXPECT_EQ(reads(store, "a b") + reads(store, "c/d") + reads(store, "a b"), 3);
  ASSERT_TRUE(store.stat("e", {}));

  EXPECT_EQ(notes(), std::string("/data/a b\0/data/c/d\0", 20));
}

TEST_F(NotedStoreTest, WhatCannotBeNotedIsReadAllTheSame) {
  NotedStore store(std::make_unique<ReadableStore>(), "/data",
                   notes_ / "nowhere");

  EXPECT_EQ(reads(store, "a"), 1);
}

}  // namespace
}  // namespace leat::testing
