// Any reply of a server. Every operation is answered once, a value is only
// found if it is the one that was asked for, and nothing is written past it.
// The answers are the same for bytes in any portions.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "leat/cache/memcached/pipeline.h"
#include "leat/cache/memcached/slabs.h"

namespace {

using leat::PeerAnswer;
using leat::PeerOperation;

void require(bool holds) {
  if (!holds) std::abort();
}

constexpr leat::Hash128 kKey{.high = 1, .low = 2};
constexpr std::size_t kGuardBytes = 16;

/// The results of the operations: an answer each, in the order they came.
struct Outcome {
  std::string answers;
  bool is_broken = false;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

/// Three finds (of 5 bytes, of 2 pieces, of 5 bytes), an insert and statistics.
Outcome run(std::span<const std::byte> input, std::size_t portion) {
  Outcome outcome;
  std::vector<std::vector<std::byte>> memory;
  leat::SlabStatistics slabs;
  {
    leat::PeerPipeline pipeline{std::chrono::seconds(1), leat::PeerKey{}};
    for (const std::size_t bytes : {5, 130'000, 5, 5}) {
      memory.emplace_back(bytes + kGuardBytes, std::byte{0xee});
      auto operation = std::make_shared<PeerOperation>();
      operation->kind = memory.size() == 4 ? PeerOperation::Kind::kInsert
                                           : PeerOperation::Kind::kFind;
      operation->key = kKey;
      operation->split = leat::split_value(bytes);
      operation->into = std::span(memory.back()).first(bytes);
      operation->value = std::make_shared<leat::Buffer>(bytes);
      operation->done = [&outcome](const auto& answered) {
        outcome.answers +=
            static_cast<char>('a' + static_cast<int>(answered->answer));
        if (answered->kind == PeerOperation::Kind::kFind &&
            answered->answer == PeerAnswer::kYes) {
          // Only who knows the key can have made the checksum; seeds do.
          require(answered->split.value_bytes == answered->into.size());
        }
      };
      pipeline.ask(operation);
    }
    while (!pipeline.to_send().empty()) {
      pipeline.sent(pipeline.to_send().size());
    }
    pipeline.ask_statistics("stats slabs", [&](const auto& line) {
      if (line) slabs.add(*line);
    });
    while (!input.empty() && !outcome.is_broken) {
      const auto some = input.first(std::min(portion, input.size()));
      outcome.is_broken = !pipeline.receive(some);
      input = input.subspan(some.size());
    }
  }
  (void)slabs.complaint("a:1", 1000, 1 << 20);
  require(outcome.answers.size() == memory.size());
  for (const auto& bytes : memory) {
    for (const std::byte guard : std::span(bytes).last(kGuardBytes)) {
      require(guard == std::byte{0xee});
    }
  }
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  const Outcome whole = run(input, size + 1);
  require(run(input, 1) == whole);
  require(run(input, 7) == whole);
  return 0;
}
