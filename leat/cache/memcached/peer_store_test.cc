// A store with peers in front of it: which ranks read what, and that bytes are
// right after any failure of the peers.

#include "leat/cache/memcached/peer_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "leat/cache/memcached/server_process.h"
#include "leat/store/reply_box.h"
#include "leat/store/testing/fake_store.h"

namespace leat {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

constexpr auto kStorePatience = 20s;

/// Every object is 1 MB; its bytes follow from its key, ETag and offset.
class MadeUpStore final : public testing::FakeStore {
 public:
  /// The bytes of `object` from `offset` on.
  static std::string made_up(const ObjectId& object, std::uint64_t offset,
                             std::size_t bytes) {
    const std::uint64_t seed = xxh3_64(as_bytes(object.key + object.etag));
    std::string made(bytes, ' ');
    for (std::size_t i = 0; i < bytes; ++i) {
      made[i] = static_cast<char>(mix64(seed + offset + i));
    }
    return made;
  }

  void read(ReadRequest request, std::stop_token, ReadDone done) override {
    reads.fetch_add(1);
    if (is_down) {
      return done(Error(ErrorCode::kUnavailable, "the bucket is down"));
    }
    const std::string made =
        made_up(request.object, request.offset, request.into.size());
    std::memcpy(request.into.data(), made.data(), made.size());
    done({});
  }
  std::string url_of(std::string_view key) const override {
    return "made-up://" + std::string(key);
  }

  std::atomic<int> reads = 0;
  std::atomic<bool> is_down = false;
};

/// The events of a read on its way.
struct Heard final : ReadObserver {
  void backs_off(TimePoint, TimePoint) override {}
  void peer_asked(TimePoint from, TimePoint until) override {
    EXPECT_LE(from, until);
    asked.fetch_add(1);
  }
  void cache_had(CacheLevel level, std::uint64_t size_bytes) override {
    EXPECT_EQ(level, CacheLevel::kPeer);
    bytes.fetch_add(size_bytes);
  }
  std::atomic<int> asked = 0;
  std::atomic<std::uint64_t> bytes = 0;
};

/// One rank: a store of its own behind peers that all share.
struct RankStore {
  explicit RankStore(const std::string& server, const std::string& place = "") {
    auto inner = std::make_unique<MadeUpStore>();
    bucket = inner.get();
    PeerOptions options{.servers = {server}};
    options.settings.patience = kStorePatience;
    options.most_wait = 1h;  // A wait for nothing would hang.
    auto peers = PeerTier::open(options);
    EXPECT_TRUE(peers) << peers.error().message();
    EXPECT_TRUE((*peers)->wait_for_servers(kStorePatience));
    store = std::make_unique<PeerStore>(std::move(inner), *std::move(peers),
                                        place, &metrics);
  }

  Result<void> read(const ObjectId& object, std::uint64_t offset,
                    std::size_t bytes, ReadObserver* observer = nullptr,
                    std::optional<ReadHint> hint = ReadHint{}) const {
    std::string into(bytes, ' ');
    auto result = read_range(*store,
                             {.object = object,
                              .offset = offset,
                              .into = std::as_writable_bytes(std::span(into)),
                              .observer = observer,
                              .hint = hint},
                             {});
    if (result && into != MadeUpStore::made_up(object, offset, bytes)) {
      ADD_FAILURE() << "wrong bytes of " << object.key;
    }
    return result;
  }
  /// Until what was read before can be found.
  void settle(std::uint64_t inserts) const {
    while (store->peers().counts().inserts < inserts) {
      std::this_thread::yield();
    }
  }

  Metrics metrics;
  MadeUpStore* bucket = nullptr;
  std::unique_ptr<PeerStore> store;
};

class PeerStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto started =
        ServerProcess::start({.patience = kStorePatience}, process_env());
    ASSERT_TRUE(started) << started.error().message();
    server_ = *std::move(started);
  }
  std::unique_ptr<ServerProcess> server_;
};

TEST_F(PeerStoreTest, AnObjectWithoutAVersionIsKeptByNobody) {
  const RankStore first(server_->name());
  const RankStore second(server_->name());
  Heard heard;

  ASSERT_TRUE(first.read({"a", ""}, 0, 100, &heard));
  ASSERT_TRUE(first.read({"b", "1"}, 0, 100));
  first.settle(1);
  ASSERT_TRUE(second.read({"a", ""}, 0, 100, &heard));

  EXPECT_EQ(second.bucket->reads, 1);
  EXPECT_EQ(heard.asked, 0);
  EXPECT_EQ(first.store->peers().counts().inserts, 1u);
}

TEST_F(PeerStoreTest, ARangeIsReadFromTheBucketOnce) {
  const RankStore first(server_->name());
  const RankStore second(server_->name());
  Heard missed;
  Heard found;

  ASSERT_TRUE(first.read({"a", "1"}, 100, 200'000, &missed));
  first.settle(1);
  ASSERT_TRUE(second.read({"a", "1"}, 100, 200'000, &found));
  ASSERT_TRUE(first.read({"a", "1"}, 100, 200'000));

  EXPECT_EQ(first.bucket->reads, 1);
  EXPECT_EQ(second.bucket->reads, 0);
  EXPECT_EQ(missed.asked, 1);
  EXPECT_EQ(missed.bytes, 0u);
  EXPECT_EQ(found.asked, 1);
  EXPECT_EQ(found.bytes, 200'000u);
  EXPECT_EQ(second.metrics.value(Metric::kCachePeerHits), 1);
  EXPECT_EQ(first.metrics.value(Metric::kCachePeerMisses), 1);
}

TEST_F(PeerStoreTest, RanksThatNeedTheSameAtOnceReadItOnce) {
  constexpr int kObjects = 200;
  std::vector<std::unique_ptr<RankStore>> ranks;
  ranks.reserve(4);
  for (int i = 0; i < 4; ++i) {
    ranks.push_back(std::make_unique<RankStore>(server_->name()));
  }
  std::vector<std::jthread> threads;
  threads.reserve(ranks.size());

  for (const auto& rank : ranks) {
    threads.emplace_back([&rank] {
      for (int i = 0; i < kObjects; ++i) {
        ASSERT_TRUE(rank->read({std::to_string(i), "1"}, 0, 5000));
      }
    });
  }
  threads.clear();

  int reads = 0;
  for (const auto& rank : ranks) reads += rank->bucket->reads;
  EXPECT_EQ(reads, kObjects);
}

TEST_F(PeerStoreTest, AnotherVersionRangeOrPlaceIsAnotherRecord) {
  const RankStore rank(server_->name());
  const RankStore elsewhere(server_->name(), "https://other\n");
  ASSERT_TRUE(rank.read({"a", "1"}, 0, 1000));
  rank.settle(1);

  ASSERT_TRUE(rank.read({"a", "2"}, 0, 1000));
  ASSERT_TRUE(rank.read({"a", "1"}, 1, 1000));
  ASSERT_TRUE(rank.read({"a", "1"}, 0, 999));
  ASSERT_TRUE(elsewhere.read({"a", "1"}, 0, 1000));

  EXPECT_EQ(rank.bucket->reads, 4);
  EXPECT_EQ(elsewhere.bucket->reads, 1);
}

TEST_F(PeerStoreTest, ReadsWithoutAHintPassPeersBy) {
  const RankStore rank(server_->name());

  ASSERT_TRUE(rank.read({"a", "1"}, 0, 1000, nullptr, std::nullopt));

  EXPECT_EQ(rank.bucket->reads, 1);
  EXPECT_EQ(rank.store->peers().counts().misses, 0u);
}

TEST_F(PeerStoreTest, AFailedReadKeepsNobodyWaiting) {
  const RankStore unlucky(server_->name());
  const RankStore other(server_->name());
  unlucky.bucket->is_down = true;

  const auto failed = unlucky.read({"a", "1"}, 0, 1000);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message(), "the bucket is down");
  ASSERT_TRUE(other.read({"a", "1"}, 0, 1000));

  EXPECT_EQ(other.store->peers().counts().misses, 1u);
  EXPECT_EQ(other.bucket->reads, 1);
}

TEST_F(PeerStoreTest, ServersMayComeAndGoUnderReads) {
  const RankStore rank(server_->name());
  const std::string port =
      server_->name().substr(server_->name().find(':') + 1);
  std::atomic<bool> is_over = false;
  std::atomic<int> reads = 0;
  std::jthread trouble([&] {
    for (int i = 0; i < 5; ++i) {
      const int before = reads;
      while (reads < before + 60) std::this_thread::yield();
      server_.reset();
      auto again = ServerProcess::start(
          {.port = static_cast<std::uint16_t>(std::stoi(port)),
           .patience = kStorePatience},
          process_env());
      if (again) server_ = *std::move(again);
    }
    is_over = true;
  });

  while (!is_over) {
    ASSERT_TRUE(rank.read({std::to_string(reads++ % 50), "1"}, 0, 300'000));
  }

  EXPECT_GT(rank.store->peers().counts().outages, 0u);
}

}  // namespace
}  // namespace leat
