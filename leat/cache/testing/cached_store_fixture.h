// A CachedStore over a store that makes its bytes up, and a reader of it.
#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "leat/base/units.h"
#include "leat/cache/cached_store.h"
#include "leat/cache/testing/faulty_file_ops.h"
#include "leat/store/testing/fake_store.h"
#include "leat/store/testing/faulty_store.h"

namespace leat::testing {

inline constexpr std::size_t kLength = 1000;

/// The bytes of its key: any read of that object gives them.
inline std::string bytes_of(const std::string& key) {
  std::string bytes(kLength, '\0');
  for (std::size_t i = 0; i < kLength; ++i) {
    bytes[i] = static_cast<char>(mix64(i + xxh3_64(as_bytes(key))));
  }
  return bytes;
}

/// Answers every read before read() returns, and counts them.
class CountingStore final : public FakeStore {
 public:
  explicit CountingStore(std::atomic<int>& reads) : reads_(reads) {}
  void read(ReadRequest request, std::stop_token stop, ReadDone done) override {
    if (stop.stop_requested()) {
      return done(Error(ErrorCode::kCancelled, "cancelled"));
    }
    ++reads_;
    const std::string bytes = bytes_of(request.object.key);
    std::copy_n(as_bytes(bytes).begin(), request.into.size(),
                request.into.begin());
    done({});
  }
  std::string url_of(std::string_view key) const override {
    return "mem://" + std::string(key);
  }

 private:
  std::atomic<int>& reads_;
};

/// Waits for one read, and hears where its bytes came from.
class Reader final : public ReadObserver {
 public:
  void backs_off(TimePoint, TimePoint) override {}
  void cache_looked(TimePoint from, TimePoint until) override {
    looked = until >= from;
  }
  void other_job_awaited(TimePoint from, TimePoint until) override {
    awaited = until > from;
  }
  void cache_had(CacheLevel level, std::uint64_t bytes) override {
    had = level;
    EXPECT_EQ(bytes, kLength);
  }
  ReadDone done() {
    return [this](Result<void> answered) {
      result = std::move(answered);
      is_done.count_down();
    };
  }
  std::string bytes() { return std::string(as_text(buffer.span())); }

  Buffer buffer{kLength};
  Result<void> result;
  bool looked = false;
  bool awaited = false;
  std::optional<CacheLevel> had;
  std::latch is_done{1};
};

struct Asked {
  std::string etag = "\"1\"";
  AccessTime now = 0;
  AccessTime next_use = 1000;
  std::optional<std::uint64_t> sample = std::nullopt;
};

class CachedStoreTest : public ::testing::Test {
 protected:
  CachedStoreTest() {
    std::string name = ::testing::TempDir() + "leat-cached-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~CachedStoreTest() override {
    store_.reset();
    std::filesystem::remove_all(folder_);
  }

  CacheTier tier(CacheLevel level, std::uint64_t records,
                 const std::string& policy = "belady") {
    const std::uint64_t limit = records * record_cost(kLength);
    auto files = level == CacheLevel::kRam
                     ? open_segment_memory(ops_)
                     : *open_segment_folder(folder_, ops_);
    return {.level = level,
            .tier = *SegmentTier::open(
                std::move(files),
                {.limit_bytes = limit, .segment_bytes = 64 * kKiB, .source = 1},
                ops_, clock_, &metrics_),
            .policy = *RecordPolicy::make(
                {.name = policy, .samples = records + 1, .capacity = limit}),
            .is_lasting = level == CacheLevel::kDisk};
  }
  /// REQUIRES: no store is open, or it would still hold the folder's segments.
  template <class... Tiers>
  void open(Tiers... tiers) {
    std::vector<CacheTier> all;
    (all.push_back(std::move(tiers)), ...);
    auto held =
        std::make_unique<HeldStore>(std::make_unique<CountingStore>(reads_));
    held_ = held.get();
    store_ = std::make_unique<CachedStore>(
        holds_ ? std::unique_ptr<Store>(std::move(held))
               : std::make_unique<CountingStore>(reads_),
        std::move(all), options_, &metrics_);
  }
  void start(Reader& reader, const std::string& key, const Asked& asked,
             std::stop_token stop = {}) {
    store_->read({.object = {.key = key, .etag = asked.etag},
                  .into = reader.buffer.span(),
                  .observer = &reader,
                  .hint = ReadHint{.now = asked.now,
                                   .next_use = asked.next_use,
                                   .sample = asked.sample}},
                 std::move(stop), reader.done());
  }
  /// The source of the bytes; they are always right.
  std::optional<CacheLevel> read(const std::string& key, const Asked& asked) {
    Reader reader;
    start(reader, key, asked);
    reader.is_done.wait();
    EXPECT_TRUE(reader.result) << reader.result.error().message();
    EXPECT_EQ(reader.bytes(), bytes_of(key));
    store_->drain();
    return reader.had;
  }

  std::string folder_;
  FaultyFileOps ops_;
  FakeClock clock_;  // No disk is slow here.
  Metrics metrics_;
  CachedStoreOptions options_{.place = "", .epoch_time = 100};
  std::atomic<int> reads_ = 0;
  bool holds_ = false;
  HeldStore* held_ = nullptr;
  std::unique_ptr<CachedStore> store_;
};

}  // namespace leat::testing
