#include "leat/store/layers/pace_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <new>
#include <span>
#include <thread>
#include <type_traits>

#include "leat/base/check.h"
#include "leat/base/hash.h"
#include "leat/runtime/trust.h"

namespace leat {

struct PaceMemory::Block {
  std::uint64_t magic = 0;
  std::atomic<double> rate = 0;  ///< 0: there is none.
  pthread_mutex_t mutex{};
  PaceState state;
};

namespace {

using Block = PaceMemory::Block;

static_assert(std::is_trivially_copyable_v<PaceState>);
static_assert(std::atomic<double>::is_always_lock_free);

/// Another layout has another name: processes of several versions do not meet.
constexpr std::uint64_t kMagic = 0x3145434150'0000 + sizeof(Block);
constexpr std::size_t kFileBytes = 4096;
static_assert(sizeof(Block) <= kFileBytes);

constexpr std::chrono::milliseconds kMostHold{50};
constexpr int kMostLooks = 20;  // For the flock; a millisecond apart.
constexpr int kMostTries = 5;

void begin(Block& block) {
  new (&block) Block;
  pthread_mutexattr_t kind;
  LEAT_CHECK(::pthread_mutexattr_init(&kind) == 0);
  ::pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
  ::pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
  LEAT_CHECK(::pthread_mutex_init(&block.mutex, &kind) == 0);
  ::pthread_mutexattr_destroy(&kind);
  block.magic = kMagic;
}

timespec wall_time_after(std::chrono::nanoseconds wait) {
  timespec at{};
  ::clock_gettime(CLOCK_REALTIME, &at);
  const auto nanoseconds = at.tv_nsec + wait.count();
  at.tv_sec += static_cast<time_t>(nanoseconds / 1'000'000'000);
  at.tv_nsec = static_cast<long>(nanoseconds % 1'000'000'000);
  return at;
}

/// False if it cannot be had.
bool lock(Block& block) {
  int error = ::pthread_mutex_trylock(&block.mutex);
  if (error == EBUSY) {
    const timespec until = wall_time_after(kMostHold);
    error = ::pthread_mutex_timedlock(&block.mutex, &until);
  }
  if (error != EOWNERDEAD) return error == 0;
  // It may have died between two numbers.
  block.state = PaceState();
  return ::pthread_mutex_consistent(&block.mutex) == 0;
}

/// Another process that holds it may only be about to begin the state.
bool lock_shared(int file) {
  for (int i = 0; i < kMostLooks; ++i) {
    if (::flock(file, LOCK_SH | LOCK_NB) == 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

Block* map(int file) {
  void* const at =
      ::mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return at == MAP_FAILED ? nullptr : static_cast<Block*>(at);
}

/// Begins the state if nobody else uses the file. Null: it cannot be used now.
Block* join(int file) {
  if (::flock(file, LOCK_EX | LOCK_NB) == 0) {
    // Allocated, since a write to a hole of a full disk is fatal.
    if (::posix_fallocate(file, 0, kFileBytes) != 0) return nullptr;
    Block* const block = map(file);
    if (block == nullptr) return nullptr;
    begin(*block);
    ::munmap(block, kFileBytes);
  }
  // From here on the file may be begun anew by one who comes between, and
  // removed by one who leaves.
  struct stat now {};
  if (!lock_shared(file) || ::fstat(file, &now) != 0 || now.st_nlink == 0 ||
      now.st_size != static_cast<off_t>(kFileBytes)) {
    return nullptr;
  }
  Block* const block = map(file);
  if (block == nullptr || block->magic == kMagic) return block;
  ::munmap(block, kFileBytes);
  return nullptr;
}

}  // namespace

PaceMemory::PaceMemory() : own_(std::make_unique<Block>()) { begin(*own_); }

PaceMemory::PaceMemory(const std::string& folder, std::string_view service)
    : PaceMemory() {
  if (folder.empty() || !make_own_folder(folder) ||
      !is_trusted_folder(folder, "a pace that processes share")) {
    return;
  }
  const Hash128 name = xxh3_128(std::as_bytes(std::span(service)), kMagic);
  path_ = fmt::format("{}/{}.pace", folder, name.hex());
  // One who leaves may remove what was just opened.
  for (int i = 0; i < kMostTries && mapped_ == nullptr; ++i) {
    file_ = OwnedFd(
        ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file_ || !is_trusted_file(file_.get(), path_)) return;
    mapped_ = join(file_.get());
  }
  shared_ = mapped_;
}

PaceMemory::~PaceMemory() {
  if (mapped_ != nullptr) {
    ::munmap(mapped_, kFileBytes);
    // In a forked child the flock is its parent's.
    const bool is_mine = ::getpid() == owner_;
    if (is_mine && ::flock(file_.get(), LOCK_EX | LOCK_NB) == 0) {
      ::unlink(path_.c_str());
    }
  }
  ::pthread_mutex_destroy(&own_->mutex);
}

Block& PaceMemory::block() const {
  Block* const shared = shared_;
  return shared != nullptr ? *shared : *own_;
}

std::optional<double> PaceMemory::rate() const {
  const double rate = block().rate.load(std::memory_order_relaxed);
  return rate > 0 ? std::optional(rate) : std::nullopt;
}

PaceMemory::Hold PaceMemory::hold() const {
  if (Block* const shared = shared_; shared != nullptr) {
    if (lock(*shared)) return Hold(*shared);
    shared_ = nullptr;
  }
  while (!lock(*own_)) {
  }
  return Hold(*own_);
}

PaceMemory::Hold::~Hold() {
  block_.rate.store(block_.state.rate().value_or(0), std::memory_order_relaxed);
  ::pthread_mutex_unlock(&block_.mutex);
}

PaceState& PaceMemory::Hold::operator*() const { return block_.state; }

std::string pace_folder() {
  // Not made where the system has none: on a disk it would outlive a boot.
  if (::access("/dev/shm", W_OK) != 0) return {};
  return fmt::format("/dev/shm/leat-{}", ::geteuid());
}

}  // namespace leat
