// A log is read as it was written, and damage to it is named.
#include "leat/engine/order_log/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>

#include "leat/engine/order_log/writer.h"

namespace leat {
namespace {

using ::testing::HasSubstr;
constexpr std::chrono::seconds kLong{60};

class OrderLogTest : public ::testing::Test {
 protected:
  OrderLogTest() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "leat-order-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~OrderLogTest() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name = "run.order") const {
    return (folder_ / name).string();
  }
  static OrderLogHead head() {
    return {.data = "digest", .shuffle = "full", .tail = "keep", .samples = 60};
  }
  static OrderLogBatch batch(std::uint64_t from) {
    return {.from = from, .to = from + 2, .ids = {{from * 7}, {from + 1}}};
  }
  std::string bytes() const {
    std::stringstream text;
    text << std::ifstream(path(), std::ios::binary).rdbuf();
    return text.str();
  }
  void put(const std::string& bytes) const {
    std::ofstream(path(), std::ios::binary) << bytes;
  }

  struct Read {
    std::vector<OrderLogEntry> entries;
    bool is_cut_off = false;
    std::string error;
  };
  Read read() const {
    Read read;
    auto log = OrderLogReader::open(path());
    if (!log) return {.entries = {}, .error = log.error().message()};
    while (true) {
      auto entry = (*log)->next();
      if (!entry) read.error = entry.error().message();
      if (!entry || !*entry) break;
      read.entries.push_back(**entry);
    }
    read.is_cut_off = (*log)->is_cut_off();
    return read;
  }
  void write_three() const {
    auto log = OrderLogWriter::open(path(), head());
    ASSERT_TRUE(log) << log.error().message();
    (*log)->add(batch(0));
    (*log)->add(batch(2));
    (*log)->add(OrderLogEnd{.at = 4, .samples = 60});
  }

  std::filesystem::path folder_;
};

TEST_F(OrderLogTest, ReadsWhatWasWritten) {
  write_three();

  const Read all = read();

  EXPECT_EQ(all.error, "");
  EXPECT_FALSE(all.is_cut_off);
  ASSERT_EQ(all.entries.size(), 3u);
  OrderLogBatch first = batch(0);
  first.starts = true;  // The writer says so, and of the first batch alone.
  EXPECT_EQ(std::get<OrderLogBatch>(all.entries[0]), first);
  EXPECT_EQ(std::get<OrderLogBatch>(all.entries[1]), batch(2));
  EXPECT_EQ(std::get<OrderLogEnd>(all.entries[2]).at, 4u);
}

TEST_F(OrderLogTest, WhatWasAddedIsInTheFileOnceItHasSettled) {
  auto log = OrderLogWriter::open(path(), head());
  ASSERT_TRUE(log);

  for (std::uint64_t from = 0; from < 20; from += 2) {
    (*log)->add(batch(from));
    ASSERT_TRUE((*log)->settle(kLong));
    EXPECT_EQ(read().entries.size(), from / 2 + 1);  // The log is still open.
  }
}

TEST_F(OrderLogTest, SaysWhereABatchNeedNotFollow) {
  {
    auto log = OrderLogWriter::open(path(), head());
    (*log)->add(batch(0));
    (*log)->expect_start();
    (*log)->add(batch(0));
    (*log)->add(batch(2));
  }

  const Read all = read();

  ASSERT_EQ(all.entries.size(), 3u);
  EXPECT_TRUE(std::get<OrderLogBatch>(all.entries[1]).starts);
  EXPECT_FALSE(std::get<OrderLogBatch>(all.entries[2]).starts);
}

TEST_F(OrderLogTest, NeverReplacesAFile) {
  write_three();
  const std::string before = bytes();

  auto second = OrderLogWriter::open(path(), head());
  auto third = OrderLogWriter::open(path(), head());

  ASSERT_TRUE(second && third);
  EXPECT_EQ((*second)->path(), path("run.2.order"));
  EXPECT_EQ((*third)->path(), path("run.3.order"));
  EXPECT_EQ(bytes(), before);
}

TEST_F(OrderLogTest, CutOffAnywhereIsAPrefixOfItself) {
  write_three();
  const std::string whole = bytes();
  const Read all = read();

  std::size_t most = 0;
  int ends = 0;  // Sizes at which an entry ends.
  for (std::size_t size = 0; size < whole.size(); ++size) {
    put(whole.substr(0, size));
    const Read part = read();
    if (!part.error.empty()) {  // Not even a head.
      EXPECT_TRUE(part.entries.empty());
      EXPECT_EQ(ends, 0) << "at " << size << ": " << part.error;
      continue;
    }
    ASSERT_LT(part.entries.size(), all.entries.size());
    EXPECT_TRUE(std::ranges::equal(
        part.entries, std::span(all.entries).first(part.entries.size())));
    ends += part.is_cut_off ? 0 : 1;
    most = std::max(most, part.entries.size());
  }
  EXPECT_EQ(most, 2u);
  EXPECT_EQ(ends, 3);
}

TEST_F(OrderLogTest, AChangedByteIsNamed) {
  write_three();
  const std::string whole = bytes();

  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const int change : {1, 128, 255}) {
      std::string changed = whole;
      changed[i] = static_cast<char>(changed[i] ^ change);
      put(changed);
      EXPECT_NE(read().error, "") << "byte " << i << " by " << change;
    }
  }
  std::string changed = whole;
  changed.back() = static_cast<char>(changed.back() ^ 1);
  put(changed);
  EXPECT_THAT(read().error, HasSubstr("run.order is damaged at byte"));
  EXPECT_THAT(read().error, HasSubstr("another CRC"));
}

TEST_F(OrderLogTest, NamesAFileThatIsNoLog) {
  EXPECT_THAT(read().error, HasSubstr("run.order"));
  put("PK\3\4 and some more");
  EXPECT_THAT(read().error, HasSubstr("is not an order log"));
  EXPECT_FALSE(is_order_log(path()));
}

TEST_F(OrderLogTest, AFullDiskEndsTheLogAndNotTheRun) {
  auto log = OrderLogWriter::open("/dev/full-is-no-folder/run.order", head());
  ASSERT_FALSE(log);
  EXPECT_THAT(log.error().message(), HasSubstr("run.order"));

  auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  auto small = OrderLogWriter::open(path(), head());
  ASSERT_TRUE(small);
  const rlimit tight = {.rlim_cur = bytes().size() + 5,
                        .rlim_max = limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  for (std::uint64_t from = 0; from < 20; from += 2) (*small)->add(batch(from));
  EXPECT_TRUE((*small)->settle(kLong));
  (*small)->close();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, before);

  EXPECT_TRUE(read().is_cut_off);
}

}  // namespace
}  // namespace leat
