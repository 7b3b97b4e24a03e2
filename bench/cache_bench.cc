// Hits of the RAM tier, with the bookkeeping that a read costs: the look-up,
// the copy, the checksum, the policy. Watch items_per_second; if two threads
// bring no more than one, the locks are the bottleneck.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/check.h"
#include "leat/base/mutex.h"
#include "leat/cache/record_policy.h"
#include "leat/cache/segment_tier.h"

namespace {

/// Of the tier: more than the caches of most CPUs hold.
constexpr std::uint64_t kBytes = std::uint64_t{256} << 20;

leat::RecordKey key_of(std::uint64_t n) {
  return leat::record_key({.url = "s3://bucket/train/0001/0001.jpg",
                           .etag = "\"d41d8cd98f00b204e9800998ecf8427e\"",
                           .offset = n,
                           .length_bytes = 1});
}

struct Ground {
  explicit Ground(std::uint64_t length_bytes)
      : length(length_bytes), records(kBytes / leat::record_cost(length)) {
    const std::uint64_t limit = records * leat::record_cost(length);
    tier = *leat::SegmentTier::open(leat::open_segment_memory(ops),
                                    {.name = "ram", .limit_bytes = limit}, ops,
                                    clock, nullptr);
    policy = std::make_unique<leat::RecordPolicy>(
        *leat::make_cache_policy({.samples = records, .capacity = limit}),
        records);
    const leat::Buffer body(length);
    std::vector<leat::RecordKey> drop;
    for (std::uint64_t n = 0; n < records; ++n) {
      LEAT_CHECK(tier->insert(key_of(n), body.span()));
      LEAT_CHECK(
          policy->admit(key_of(n), leat::record_cost(length), 0, n + 1, drop));
    }
  }
  const std::uint64_t length;
  const std::uint64_t records;
  leat::SystemFileOps ops;
  leat::SteadyClock clock;
  std::unique_ptr<leat::SegmentTier> tier;
  leat::Mutex deciding;
  std::unique_ptr<leat::RecordPolicy> policy;
};

void ram_hit(benchmark::State& state) {
  const auto length = static_cast<std::uint64_t>(state.range(0));
  static std::unique_ptr<Ground> ground;
  // Kept from one attempt of the library to the next.
  if (state.thread_index() == 0 &&
      (ground == nullptr || ground->length != length)) {
    ground = std::make_unique<Ground>(length);
  }
  leat::Buffer into(length);
  std::vector<leat::RecordKey> drop;
  std::uint64_t n = static_cast<std::uint64_t>(state.thread_index()) * 7919;
  std::uint64_t now = 1;
  for (auto _ : state) {
    n = (n * 48271 + 11) % ground->records;  // No two are neighbours.
    const leat::RecordKey key = key_of(n);
    LEAT_CHECK(ground->tier->read(key, into.span()));
    const leat::MutexLock lock(ground->deciding);
    ground->policy->used(key, now, now + 1 + n, drop);
    ++now;
  }
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(state.iterations() *
                          static_cast<std::int64_t>(length));
}
BENCHMARK(ram_hit)
    ->Arg(1000)
    ->Arg(16'000)
    ->Arg(110'000)
    ->Threads(1)
    ->Threads(2)
    ->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
