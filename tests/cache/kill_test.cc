// Three processes work on one cache folder and are killed at random moments, as
// by kill -9: no wrong byte is ever read, nobody hangs, and the room of the
// dead is free again. LEAT_KILLS says how many are killed.

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <random>
#include <string>
#include <thread>

#include "leat/base/buffer.h"
#include "leat/base/units.h"
#include "leat/cache/segment_tier.h"

namespace leat {
namespace {

constexpr std::uint64_t kRecords = 200;
constexpr std::uint64_t kLimitBytes = 2 * kMiB;
constexpr int kWrongBytes = 3;

RecordKey key_of(std::uint64_t n) {
  return record_key(
      {.url = "mem://a", .etag = "\"1\"", .offset = n, .length_bytes = 1});
}

std::string killed_body(std::uint64_t n) {
  std::mt19937_64 bits(n);
  std::string body(1 + bits() % 40'000, '\0');
  for (char& c : body) c = static_cast<char>(bits());
  return body;
}

struct KillGround {
  SystemFileOps ops;
  SteadyClock clock;
  std::unique_ptr<SegmentTier> open(const std::string& folder) {
    auto tier = SegmentTier::open(
        *open_segment_folder(folder, ops),
        {.limit_bytes = kLimitBytes, .segment_bytes = 256 * kKiB}, ops, clock,
        nullptr);
    return tier ? *std::move(tier) : nullptr;
  }
};

/// False if it answered with bytes that are not the record's.
bool read_is_right(SegmentTier& tier, std::uint64_t n, bool& is_hit) {
  const std::string wanted = killed_body(n);
  std::string got(wanted.size(), ' ');
  is_hit = tier.read(key_of(n), std::as_writable_bytes(std::span(got)));
  return !is_hit || got == wanted;
}

/// The work of each process until it is killed.
[[noreturn]] void work(const std::string& folder, std::uint64_t seed,
                       std::atomic<std::uint64_t>& rounds) {
  KillGround ground;
  std::mt19937_64 draw(seed);
  while (true) {  // Leaving in peace is one of the ways to go, too.
    const auto tier = ground.open(folder);
    if (tier == nullptr) continue;
    for (std::uint64_t i = 0, last = draw() % 5000; i < last; ++i, ++rounds) {
      const std::uint64_t n = draw() % kRecords;
      bool is_hit = false;
      if (!read_is_right(*tier, n, is_hit)) ::_exit(kWrongBytes);
      if (!is_hit) {
        const std::string body = killed_body(n);
        (void)tier->make_room(record_cost(body.size()), true);
        if (!tier->insert(key_of(n), as_bytes(body))) {
          tier->drop(key_of(draw() % kRecords));
        }
      }
      if (draw() % 100 == 0) tier->refresh();
    }
  }
}

class KillTest : public ::testing::Test {
 protected:
  KillTest() {
    std::string name = ::testing::TempDir() + "leat-kill-XXXXXX";
    folder_ = ::mkdtemp(name.data());
    void* shared = ::mmap(nullptr, sizeof *rounds_, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    rounds_ = new (shared) std::atomic<std::uint64_t>(0);
  }
  ~KillTest() override {
    ::munmap(rounds_, sizeof *rounds_);
    std::filesystem::remove_all(folder_);
  }
  void start(pid_t& worker) {
    const std::uint64_t seed = draw_();
    worker = ::fork();
    ASSERT_GE(worker, 0);
    if (worker == 0) work(folder_, seed, *rounds_);
  }
  void kill(pid_t worker) {
    ::kill(worker, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(worker, &status, 0), worker);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        << (WIFEXITED(status) && WEXITSTATUS(status) == kWrongBytes
                ? "it read wrong bytes"
                : "it ended by itself");
  }
  std::uint64_t allocated_bytes() const {
    std::uint64_t bytes = 0;
    for (const std::string& path : segment_paths(folder_)) {
      bytes += allocated_bytes_of(path);
    }
    return bytes;
  }

  std::string folder_;
  std::atomic<std::uint64_t>* rounds_ = nullptr;
  std::mt19937_64 draw_{20240229};
};

TEST_F(KillTest, NoWrongByteNoHangNoRoomLost) {
  const char* given = ::getenv("LEAT_KILLS");
  const int kills = given != nullptr ? std::stoi(given) : 25;
  std::array<pid_t, 3> workers{};
  for (pid_t& worker : workers) ASSERT_NO_FATAL_FAILURE(start(worker));

  for (int i = 0; i < kills; ++i) {
    // All of them get somewhere between two kills: the test's own time limit
    // is what ends a hang.
    const std::uint64_t before = *rounds_;
    while (*rounds_ < before + 20) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(draw_() % 20'000));
    pid_t& worker = workers[draw_() % workers.size()];
    ASSERT_NO_FATAL_FAILURE(kill(worker));
    ASSERT_NO_FATAL_FAILURE(start(worker));
  }
  for (const pid_t worker : workers) ASSERT_NO_FATAL_FAILURE(kill(worker));

  KillGround ground;
  const auto tier = ground.open(folder_);
  ASSERT_NE(tier, nullptr);
  std::uint64_t hits = 0;
  for (std::uint64_t n = 0; n < kRecords; ++n) {
    bool is_hit = false;
    EXPECT_TRUE(read_is_right(*tier, n, is_hit)) << n;
    hits += is_hit ? 1 : 0;
  }
  EXPECT_GT(hits, 0u);
  EXPECT_LE(tier->used_bytes(), kLimitBytes);
  // Beside the records: the header, the index, and the slack that is let be.
  EXPECT_LE(allocated_bytes(),
            kLimitBytes + tier->segments() * (kMiB + 64 * kKiB));
  for (const auto& file : std::filesystem::directory_iterator(folder_)) {
    EXPECT_EQ(file.path().extension(), ".leat");
  }
  // All of it is this one's now.
  EXPECT_EQ(tier->allowed_bytes(), kLimitBytes);
  (void)tier->make_room(kLimitBytes, true);
  EXPECT_EQ(tier->used_bytes(), 0u);
}

}  // namespace
}  // namespace leat
