// The cost of sealing a piece for peers, and of checking its seal, beside the
// CRC32C that tells accidents alone: bytes_per_second, on one core.

#include <benchmark/benchmark.h>

#include <cstdint>

#include "leat/base/buffer.h"
#include "leat/base/hash.h"
#include "leat/cache/memcached/piece.h"

namespace leat {
namespace {

void BM_Seal(benchmark::State& state) {
  const Buffer bytes(static_cast<std::size_t>(state.range(0)));
  const ValueSplit split = split_value(bytes.size());
  PieceSeal seal(peer_key_of("a secret"));
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        seal.make_header({.high = 1, .low = 2}, split, 0, bytes.span()));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_Seal)->Arg(1000)->Arg(30'000)->Arg(128'000);

void BM_Crc(benchmark::State& state) {
  const Buffer bytes(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(crc32c(bytes.span()));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_Crc)->Arg(1000)->Arg(30'000)->Arg(128'000);

}  // namespace
}  // namespace leat

BENCHMARK_MAIN();
