#include "leat/cache/job_board.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <utility>

#include "leat/base/errors.h"
#include "leat/cache/segment_files.h"

namespace leat {
namespace {

static_assert(std::endian::native == std::endian::little);
constexpr std::array<char, 8> kMagic = {'L', 'E', 'A', 'T', 'J', 'O', 'B', '2'};
constexpr std::size_t kHeaderBytes = 32;
constexpr std::size_t kTurnsAt = kHeaderBytes + sizeof(std::uint64_t);

std::uint64_t bytes_for(std::uint64_t samples) {
  return kTurnsAt + samples * sizeof(ReadTurn);
}

}  // namespace

/// A board, shared by all who have mapped it.
class JobBoard::Mapped {
 public:
  /// Null on failure. REQUIRES: the file is as long as bytes_for() says.
  static std::unique_ptr<Mapped> map(int fd, std::uint64_t samples,
                                     bool is_mine) {
    void* const at =
        ::mmap(nullptr, bytes_for(samples),
               is_mine ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) return nullptr;
    return std::unique_ptr<Mapped>(
        new Mapped(static_cast<std::byte*>(at), samples));
  }
  ~Mapped() { ::munmap(bytes_, bytes_for(samples_)); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  std::uint64_t samples() const { return samples_; }

  void write_header(Hash128 dataset) {
    std::memcpy(bytes_, kMagic.data(), kMagic.size());
    std::memcpy(bytes_ + 8, &samples_, 8);
    std::memcpy(bytes_ + 16, &dataset.high, 8);
    std::memcpy(bytes_ + 24, &dataset.low, 8);
  }
  bool has_header(Hash128 dataset) const {
    return std::memcmp(bytes_, kMagic.data(), kMagic.size()) == 0 &&
           std::memcmp(bytes_ + 8, &samples_, 8) == 0 &&
           std::memcmp(bytes_ + 16, &dataset.high, 8) == 0 &&
           std::memcmp(bytes_ + 24, &dataset.low, 8) == 0;
  }

  // Others read while the owner writes; each number is atomic.
  std::uint64_t over() const {
    return __atomic_load_n(over_place(), __ATOMIC_RELAXED);
  }
  void set_over(std::uint64_t turns) {
    __atomic_store_n(over_place(), turns, __ATOMIC_RELAXED);
  }
  ReadTurn turn(std::uint64_t sample) const {
    return __atomic_load_n(turn_place(sample), __ATOMIC_RELAXED);
  }
  void set_turn(std::uint64_t sample, ReadTurn turn) {
    __atomic_store_n(turn_place(sample), turn, __ATOMIC_RELAXED);
  }

 private:
  Mapped(std::byte* bytes, std::uint64_t samples)
      : bytes_(bytes), samples_(samples) {}
  std::uint64_t* over_place() const {
    return reinterpret_cast<std::uint64_t*>(bytes_ + kHeaderBytes);
  }
  ReadTurn* turn_place(std::uint64_t sample) const {
    return reinterpret_cast<ReadTurn*>(bytes_ + kTurnsAt) + sample;
  }

  std::byte* const bytes_;
  const std::uint64_t samples_;
};

JobBoard::JobBoard(std::string folder, std::string path, OwnedFd file,
                   std::unique_ptr<Mapped> board, Hash128 dataset)
    : folder_(std::move(folder)),
      path_(std::move(path)),
      file_(std::move(file)),
      samples_(board->samples()),
      dataset_(dataset),
      mine_(std::move(board)) {}

Result<std::unique_ptr<JobBoard>> JobBoard::open(const std::string& folder,
                                                 Hash128 dataset,
                                                 std::uint64_t samples) {
  if (samples > kMostSamples) {
    return invalid("{} samples are past {} that jobs tell each other of",
                   samples, kMostSamples);
  }
  std::random_device draw;
  std::string path =
      fmt::format("{}/job-{:08x}{:08x}{}", folder, draw(), draw(), kSuffix);
  OwnedFd file(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return file_error(-errno, "making " + path);
  const auto failed = [&](int error, const std::string& doing) {
    ::unlink(path.c_str());
    return file_error(-error, doing + path);
  };
  if (!try_lock_segment(file.get())) return failed(EAGAIN, "locking ");
  // Allocates its blocks too: on a full disk, writing to a map is fatal.
  if (const int error = ::posix_fallocate(
          file.get(), 0, static_cast<off_t>(bytes_for(samples)));
      error != 0) {
    return failed(error, "making room for ");
  }
  std::unique_ptr<Mapped> mine = Mapped::map(file.get(), samples, true);
  if (mine == nullptr) return failed(errno, "mapping ");
  for (std::uint64_t i = 0; i < samples; ++i) {
    mine->set_turn(i, static_cast<ReadTurn>(i + 1));
  }
  mine->write_header(dataset);
  return std::unique_ptr<JobBoard>(new JobBoard(
      folder, std::move(path), std::move(file), std::move(mine), dataset));
}

JobBoard::~JobBoard() { ::unlink(path_.c_str()); }

void JobBoard::begin_epoch(const Reading& reading) {
  const MutexLock lock(mutex_);
  epoch_ = reading.epoch;
  ranks_ = reading.ranks;
  mine_->set_over(reading.begin);
  for (std::uint64_t i = 0; i < samples_; ++i) {
    mine_->set_turn(i, i < reading.turns.size() ? reading.turns[i] : 0);
  }
}

void JobBoard::used(std::uint64_t epoch, SampleId sample, ReadTurn next) {
  const MutexLock lock(mutex_);
  if (epoch != epoch_ || sample.value >= samples_) return;
  mine_->set_turn(sample.value, next);
  mine_->set_over(mine_->over() + ranks_);
}

bool JobBoard::is_alive(const std::string& path, const OwnedFd& file) const {
  struct stat now {};
  if (::fstat(file.get(), &now) != 0 || now.st_nlink == 0) return false;
  if (!try_lock_segment(file.get())) return true;
  ::unlink(path.c_str());  // Nobody else locks it: its owner is gone.
  return false;
}

void JobBoard::meet(const std::string& path) {
  Other other{
      .file = OwnedFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW))};
  // Its owner sets its length before locking it.
  struct stat now {};
  if (!other.file || ::fstat(other.file.get(), &now) != 0) return;
  if (now.st_uid != ::geteuid() || now.st_size == 0) return;
  if (static_cast<std::uint64_t>(now.st_size) == bytes_for(samples_)) {
    other.board = Mapped::map(other.file.get(), samples_, false);
  }
  others_.emplace(path, std::move(other));
}

void JobBoard::look() {
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder_, error), end;
       !error && at != end; at.increment(error)) {
    const std::string path = at->path().string();
    if (path == path_ || !path.ends_with(kSuffix)) continue;
    if (!others_.contains(path)) meet(path);
  }
  std::vector<std::shared_ptr<const Mapped>> boards;
  for (auto at = others_.begin(); at != others_.end();) {
    const Other& other = at->second;
    if (!is_alive(at->first, other.file)) {
      at = others_.erase(at);
      continue;
    }
    if (other.board != nullptr && other.board->has_header(dataset_)) {
      boards.push_back(other.board);
    }
    ++at;
  }
  const MutexLock lock(mutex_);
  boards_ = std::move(boards);
}

std::optional<JobBoard::Wanted> JobBoard::wanted(SampleId sample) const {
  if (sample.value >= samples_) return std::nullopt;
  std::optional<Wanted> wanted;
  const MutexLock lock(mutex_);
  for (const auto& board : boards_) {
    const std::uint64_t turn = board->turn(sample.value);
    if (turn == 0) continue;
    const std::uint64_t over = board->over();
    const std::uint64_t turns = turn > over ? turn - over - 1 : 0;
    if (!wanted) wanted = Wanted{.turns = turns};
    wanted->turns = std::min(wanted->turns, turns);
    if (turn <= samples_) ++wanted->jobs;
  }
  return wanted;
}

std::size_t JobBoard::others() const {
  const MutexLock lock(mutex_);
  return boards_.size();
}

}  // namespace leat
