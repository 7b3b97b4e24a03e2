// ram_hit: hits of the RAM tier, with the bookkeeping that a read costs: the
// look-up, the copy, the checksum, the policy. Watch items_per_second; if two
// threads bring no more than one, the locks are the bottleneck.
//
// disk_read: of 128 KiB from the disk tier in $LEAT_BENCH_DIR (else /tmp), in
// the page cache, with the look-up and the checksum. To be held against fio.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/check.h"
#include "leat/base/mutex.h"
#include "leat/cache/record_policy.h"
#include "leat/cache/segment_tier.h"

namespace {

/// The size of the tier: more than the caches of most CPUs hold.
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
    policy = *leat::RecordPolicy::make({.samples = records, .capacity = limit});
    const leat::Buffer body(length);
    std::vector<leat::PlannedRecord> drop;
    for (std::uint64_t n = 0; n < records; ++n) {
      LEAT_CHECK(tier->insert(key_of(n), body.span()));
      LEAT_CHECK(policy->admit(record_of(n), 0, n + 1, drop));
    }
  }
  leat::PlannedRecord record_of(std::uint64_t n) const {
    return {.key = key_of(n),
            .length_bytes = static_cast<std::uint32_t>(length)};
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
  std::vector<leat::PlannedRecord> drop;
  std::uint64_t n = static_cast<std::uint64_t>(state.thread_index()) * 7919;
  std::uint64_t now = 1;
  for (auto _ : state) {
    n = (n * 48271 + 11) % ground->records;  // No two are neighbours.
    const leat::PlannedRecord record = ground->record_of(n);
    LEAT_CHECK(ground->tier->read(record.key, into.span()));
    const leat::MutexLock lock(ground->deciding);
    ground->policy->used(record, now, now + 1 + n, drop);
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

constexpr std::uint64_t kDiskLength = 128 * 1024;

/// A folder of its own, gone at the end.
struct Disk {
  Disk() {
    const char* chosen = std::getenv("LEAT_BENCH_DIR");
    folder = std::string(chosen == nullptr ? "/tmp" : chosen) + "/leat-XXXXXX";
    LEAT_CHECK(::mkdtemp(folder.data()) != nullptr);
    const std::uint64_t limit = records * leat::record_cost(kDiskLength);
    tier =
        *leat::SegmentTier::open(*leat::open_segment_folder(folder, ops),
                                 {.limit_bytes = limit}, ops, clock, nullptr);
    const leat::Buffer body(kDiskLength);
    for (std::uint64_t n = 0; n < records; ++n) {
      LEAT_CHECK(tier->insert(key_of(n), body.span()));
    }
  }
  ~Disk() {
    tier.reset();
    std::filesystem::remove_all(folder);
  }

  const std::uint64_t records = kBytes / kDiskLength;
  leat::SystemFileOps ops;
  leat::SteadyClock clock;
  std::string folder;
  std::unique_ptr<leat::SegmentTier> tier;
};

void disk_read(benchmark::State& state) {
  static std::unique_ptr<Disk> disk;
  if (state.thread_index() == 0 && disk == nullptr) {
    disk = std::make_unique<Disk>();
  }
  leat::Buffer into(kDiskLength);
  std::uint64_t n = static_cast<std::uint64_t>(state.thread_index()) * 7919;
  for (auto _ : state) {
    n = (n * 48271 + 11) % disk->records;
    LEAT_CHECK(disk->tier->read(key_of(n), into.span()));
  }
  state.SetBytesProcessed(state.iterations() *
                          static_cast<std::int64_t>(kDiskLength));
}
BENCHMARK(disk_read)->Threads(8)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
