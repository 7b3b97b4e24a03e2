// A store with a cache in front of it is a store: it must follow the rules for
// every store, with each read done twice, so that the second is the cache's.

#include "leat/store/testing/conformance.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "leat/base/units.h"
#include "leat/cache/cached_store.h"
#include "leat/store/memory/memory_store.h"
#include "leat/store/store_wrapper.h"

namespace leat::testing {
namespace {

/// Hears whether a read was a hit.
class HitObserver final : public ReadObserver {
 public:
  void backs_off(TimePoint, TimePoint) override {}
  void cache_had(CacheLevel, std::uint64_t) override { is_hit = true; }
  bool is_hit = false;
};

/// Gives each read a hint, and answers with what reading it again brings.
class ReadTwiceStore final : public StoreWrapper {
 public:
  explicit ReadTwiceStore(std::unique_ptr<Store> inner)
      : StoreWrapper(std::move(inner)) {}

  void read(ReadRequest request, std::stop_token stop, ReadDone done) override {
    request.hint = ReadHint{.now = now_++, .next_use = 1'000'000};
    ReadRequest again = request;
    inner_->read(std::move(request), stop,
                 [this, again = std::move(again), stop,
                  done = std::move(done)](Result<void> result) mutable {
                   if (!result) return done(std::move(result));
                   std::ranges::fill(again.into, std::byte{0});
                   auto heard = std::make_shared<HitObserver>();
                   again.observer = heard.get();
                   inner_->read(
                       std::move(again), stop,
                       [heard, done = std::move(done)](Result<void> second) {
                         EXPECT_TRUE(heard->is_hit || !second);
                         done(std::move(second));
                       });
                 });
  }

 private:
  std::atomic<std::uint64_t> now_ = 0;
};

struct Ground {
  SystemFileOps ops;
  SteadyClock clock;
};

std::shared_ptr<Store> open_cached(const Objects& objects) {
  constexpr std::uint64_t kLimit = 64 * kMiB;
  constexpr std::uint64_t kRecords = 10'000;
  auto ground = std::make_shared<Ground>();
  std::vector<CacheTier> tiers;
  tiers.push_back(
      {.level = CacheLevel::kRam,
       .tier = *SegmentTier::open(open_segment_memory(ground->ops),
                                  {.name = "ram", .limit_bytes = kLimit},
                                  ground->ops, ground->clock, nullptr),
       .policy =
           *RecordPolicy::make({.samples = kRecords, .capacity = kLimit})});
  auto cached = std::make_unique<CachedStore>(
      open_memory_store({objects.begin(), objects.end()},
                        {.most_keys_per_page = 7}),
      std::move(tiers), CachedStoreOptions{.epoch_time = kRecords}, nullptr);
  return owning(ground, std::make_unique<ReadTwiceStore>(std::move(cached)));
}

INSTANTIATE_TEST_SUITE_P(Cached, StoreConformanceTest,
                         conforming({.open = open_cached}));

}  // namespace
}  // namespace leat::testing
