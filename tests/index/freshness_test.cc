#include "leat/index/freshness.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/index/build.h"
#include "leat/store/memory/memory_store.h"
#include "leat/store/store_wrapper.h"

namespace leat {
namespace {

/// Counts listings.
class CountingStore final : public StoreWrapper {
 public:
  explicit CountingStore(std::unique_ptr<Store> inner)
      : StoreWrapper(std::move(inner)) {}
  void read(ReadRequest request, std::stop_token stop, ReadDone done) override {
    inner_->read(std::move(request), std::move(stop), std::move(done));
  }
  Result<ListPage> list(const ListRequest& request,
                        std::stop_token stop) override {
    ++lists;
    return inner_->list(request, std::move(stop));
  }

  int lists = 0;
};

std::string key(int number) { return fmt::format("p/{:05}", number); }

class FreshnessTest : public ::testing::Test {
 protected:
  /// Objects 0, 2, 4, … of one page a thousand.
  void fill(int objects) {
    for (int i = 0; i < objects; ++i) put(2 * i);
    auto built = build_catalogue(store_, "p", {}, {});
    ASSERT_TRUE(built) << built.error().message();
    catalogue_ = *Catalogue::open(std::move(built->bytes));
    store_.lists = 0;
  }

  void put(int number, std::string_view bytes = "x") {
    ASSERT_TRUE(store_.write(key(number), as_bytes(bytes), {}));
  }

  bool is_true() {
    const auto seen = glimpse_at(store_, "p", *catalogue_, {});
    EXPECT_TRUE(seen) << seen.error().message();
    return fits(*catalogue_, *seen, true);
  }

  CountingStore store_{open_memory_store(
      {}, {.most_keys_per_page = 1000, .url = "s3://bucket/"})};
  std::optional<Catalogue> catalogue_;
};

TEST_F(FreshnessTest, ASmallListingIsSeenWhole) {
  fill(1500);
  EXPECT_TRUE(is_true());
  EXPECT_EQ(store_.lists, 2);
  put(1999);
  EXPECT_FALSE(is_true());
}

TEST_F(FreshnessTest, AnotherSizeOrVersionIsAnotherObject) {
  fill(3);
  put(2, "yy");
  EXPECT_FALSE(is_true());
  fill(3);
  EXPECT_TRUE(is_true());
  put(2, "z");  // It has the same size.
  EXPECT_FALSE(is_true());
}

TEST_F(FreshnessTest, OfALargeOneTheBeginAndTheEndAreSeen) {
  fill(6000);
  EXPECT_TRUE(is_true());
  EXPECT_EQ(store_.lists, 2);
  put(7001);  // A change in the middle, which it cannot see.
  EXPECT_TRUE(is_true());
  put(12'000);  // Behind the last.
  EXPECT_FALSE(is_true());
  fill(6000);
  put(1);
  EXPECT_FALSE(is_true());
}

TEST(AgeTest, IsForPeople) {
  const std::chrono::sys_seconds now(std::chrono::seconds(1'000'000'000));
  const auto said = [&](std::int64_t seconds) {
    return age_for_people(now - std::chrono::seconds(seconds), now);
  };
  EXPECT_EQ(said(-5), "of 0 s ago");
  EXPECT_EQ(said(119), "of 119 s ago");
  EXPECT_EQ(said(120), "of 2 min ago");
  EXPECT_EQ(said(7200), "of 2 h ago");
  EXPECT_EQ(said(3 * 86'400), "of 3 d ago");
  EXPECT_EQ(age_for_people({}, now), "of unknown age");
}

TEST(SeenNoteTest, IsReadAsItWasWrittenOrNotAtAll) {
  const std::string path = ::testing::TempDir() + "/seen-note-test";
  std::filesystem::remove(path + ".seen");
  EXPECT_FALSE(read_seen(path));
  write_seen(path, {.seen = "listing ab", .catalogue = "cd", .versions = "ef"});
  const auto note = read_seen(path);
  ASSERT_TRUE(note);
  EXPECT_EQ(note->seen, "listing ab");
  EXPECT_EQ(note->catalogue, "cd");
  EXPECT_EQ(note->versions, "ef");
  for (const std::string text :
       {"", "leat seen 2\n", "leat seen 2\nab\ncd\nef", "leat seen 2\nab\ncd\n",
        "another 2\nab\ncd\nef\n",
        "leat seen 1\nab\ncd\n"}) {  // It has no versions.
    std::ofstream(path + ".seen") << text;
    EXPECT_FALSE(read_seen(path)) << text;
  }
}

TEST(SeenNoteTest, ATimeToComeTellsNothing) {
  const std::string path = ::testing::TempDir() + "/seen-ahead-test";
  write_seen(path, {.seen = "made", .catalogue = "cd", .versions = "ef"});
  EXPECT_TRUE(was_checked_for_job(path));
  const auto now = std::filesystem::file_time_type::clock::now();
  std::filesystem::last_write_time(path + ".seen",
                                   now + std::chrono::hours(24));
  EXPECT_FALSE(was_checked_for_job(path));
}

}  // namespace
}  // namespace leat
