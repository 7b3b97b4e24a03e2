// Tests for every store: many reads at once, and stops.
#include <fmt/format.h>

#include <atomic>
#include <latch>

#include "leat/store/testing/conformance_themes.h"

namespace leat::testing {

void join_stops() {}

TEST_P(StoreConformanceTest, RefusesWhatIsAlreadyStopped) {
  open({{"object", patterned(1000)}});
  std::stop_source source;
  source.request_stop();

  EXPECT_ERROR(read({.key = "object"}, 0, 1000, source.get_token()),
               ErrorCode::kCancelled);
  EXPECT_ERROR(store().stat("object", source.get_token()),
               ErrorCode::kCancelled);
}

TEST_P(StoreConformanceTest, AnswersOnceHoweverItIsStopped) {
  open({{"object", patterned(1 << 20)}});
  constexpr std::size_t kReads = 32;
  std::vector<std::string> buffers(kReads, std::string(1 << 20, '\0'));
  std::vector<std::atomic<int>> answers(kReads);
  std::atomic<std::size_t> strange = 0;
  std::latch all_answered(kReads);
  std::stop_source source;

  for (std::size_t i = 0; i < kReads; ++i) {
    store().read(
        {.object = {.key = "object"},
         .into = std::as_writable_bytes(
             std::span(buffers[i].data(), buffers[i].size()))},
        source.get_token(), [&, i](const Result<void>& result) {
          if (!result && result.error().code() != ErrorCode::kCancelled) {
            ++strange;
          }
          ++answers[i];
          all_answered.count_down();
        });
    if (i == kReads / 2) source.request_stop();
  }
  all_answered.wait();
  close();

  EXPECT_EQ(strange, 0u);
  for (const auto& count : answers) EXPECT_EQ(count, 1);
}

TEST_P(StoreConformanceTest, ReadsManyAtOnceAndMayThenBeDestroyed) {
  Objects objects;
  for (int i = 0; i < 16; ++i) {
    objects[fmt::format("object-{:02}", i)] =
        patterned(10'000 + static_cast<std::size_t>(i),
                  static_cast<std::uint64_t>(i) + 7);
  }
  open(objects);
  const std::size_t reads = GetParam().most_reads;
  std::vector<std::string> buffers(reads);
  std::vector<std::string> keys(reads);
  std::atomic<std::size_t> failed = 0;
  std::latch all_answered(static_cast<std::ptrdiff_t>(reads));

  for (std::size_t i = 0; i < reads; ++i) {
    keys[i] = fmt::format("object-{:02}", i % 16);
    buffers[i].resize(objects[keys[i]].size() - i % 50);
    store().read({.object = {.key = keys[i]},
                  .offset = i % 50,
                  .into = std::as_writable_bytes(
                      std::span(buffers[i].data(), buffers[i].size()))},
                 {}, [&](const Result<void>& result) {
                   if (!result) ++failed;
                   all_answered.count_down();
                 });
  }
  all_answered.wait();
  close();

  EXPECT_EQ(failed, 0u);
  for (std::size_t i = 0; i < reads; ++i) {
    EXPECT_TRUE(buffers[i] == objects[keys[i]].substr(i % 50)) << i;
  }
}

}  // namespace leat::testing
