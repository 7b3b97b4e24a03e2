#include "leat/cache/job_board.h"

#include <fcntl.h>
#include <fmt/format.h>
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

#include "leat/cache/segment_files.h"

namespace leat {
namespace {

static_assert(std::endian::native == std::endian::little);
constexpr std::array<char, 8> kMagic = {'L', 'E', 'A', 'T', 'J', 'O', 'B', '1'};
constexpr std::size_t kHeaderBytes = 32;
constexpr std::string_view kSuffix = ".board";

/// True if that many bytes were there.
bool read_whole(int fd, void* into, std::size_t size, off_t at) {
  return ::pread(fd, into, size, at) == static_cast<ssize_t>(size);
}

}  // namespace

JobBoard::JobBoard(std::string folder, std::string path, OwnedFd file,
                   std::uint64_t samples, Hash128 dataset)
    : folder_(std::move(folder)),
      path_(std::move(path)),
      file_(std::move(file)),
      samples_(samples),
      dataset_(dataset),
      bits_((samples + 7) / 8),
      wanted_(bits_.size()) {}

Result<std::unique_ptr<JobBoard>> JobBoard::open(const std::string& folder,
                                                 Hash128 dataset,
                                                 std::uint64_t samples) {
  if (samples > kMostSamples) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{} samples are past {} that jobs tell each other "
                             "of",
                             samples, kMostSamples));
  }
  std::random_device draw;
  std::string path =
      fmt::format("{}/job-{:08x}{:08x}{}", folder, draw(), draw(), kSuffix);
  OwnedFd file(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return file_error(-errno, "making " + path);
  if (!try_lock_segment(file.get())) {
    return file_error(-EAGAIN, "locking " + path);
  }
  std::unique_ptr<JobBoard> board(
      new JobBoard(folder, std::move(path), std::move(file), samples, dataset));
  board->begin_epoch(0, std::vector<bool>(samples, true));
  return board;
}

JobBoard::~JobBoard() { ::unlink(path_.c_str()); }

std::vector<std::byte> JobBoard::header() const {
  std::vector<std::byte> bytes(kHeaderBytes);
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  std::memcpy(bytes.data() + 8, &samples_, 8);
  std::memcpy(bytes.data() + 16, &dataset_.high, 8);
  std::memcpy(bytes.data() + 24, &dataset_.low, 8);
  return bytes;
}

void JobBoard::begin_epoch(std::uint64_t epoch,
                           const std::vector<bool>& wanted) {
  const std::vector<std::byte> head = header();
  const MutexLock lock(mutex_);
  epoch_ = epoch;
  std::ranges::fill(bits_, std::uint8_t{0});
  for (std::uint64_t i = 0;
       i < std::min<std::uint64_t>(samples_, wanted.size()); ++i) {
    if (wanted[i]) bits_[i / 8] |= static_cast<std::uint8_t>(1U << i % 8);
  }
  // A disk that is full leaves a board that is too short, and passed over.
  (void)!::pwrite(file_.get(), head.data(), head.size(), 0);
  (void)!::pwrite(file_.get(), bits_.data(), bits_.size(), kHeaderBytes);
}

void JobBoard::used(std::uint64_t epoch, SampleId sample) {
  const MutexLock lock(mutex_);
  if (epoch != epoch_ || sample.value >= samples_) return;
  std::uint8_t& byte = bits_[sample.value / 8];
  byte &= static_cast<std::uint8_t>(~(1U << sample.value % 8));
  (void)!::pwrite(file_.get(), &byte, 1,
                  static_cast<off_t>(kHeaderBytes + sample.value / 8));
}

bool JobBoard::is_alive(const std::string& path, const OwnedFd& file) const {
  struct stat now {};
  if (::fstat(file.get(), &now) != 0 || now.st_nlink == 0) return false;
  if (!try_lock_segment(file.get())) return true;
  ::unlink(path.c_str());  // Nobody else has it: its owner is gone.
  return false;
}

void JobBoard::meet(const std::string& path) {
  Other other{
      .file = OwnedFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW))};
  // Its owner makes it before it locks it.
  struct stat now {};
  if (!other.file || ::fstat(other.file.get(), &now) != 0) return;
  if (static_cast<std::uint64_t>(now.st_size) < kHeaderBytes) return;
  std::vector<std::byte> head(kHeaderBytes);
  other.is_of_us = read_whole(other.file.get(), head.data(), kHeaderBytes, 0) &&
                   head == header();
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
  std::vector<std::uint8_t> wanted((samples_ + 7) / 8);
  std::size_t jobs = 0;
  for (auto at = others_.begin(); at != others_.end();) {
    Other& other = at->second;
    if (!is_alive(at->first, other.file)) {
      at = others_.erase(at);
      continue;
    }
    other.bits.resize(wanted.size());
    if (other.is_of_us && read_whole(other.file.get(), other.bits.data(),
                                     other.bits.size(), kHeaderBytes)) {
      ++jobs;
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        wanted[i] |= other.bits[i];
      }
    }
    ++at;
  }
  const MutexLock lock(mutex_);
  wanted_ = std::move(wanted);
  other_jobs_ = jobs;
}

bool JobBoard::others_want(SampleId sample) const {
  if (sample.value >= samples_) return false;
  const MutexLock lock(mutex_);
  return (wanted_[sample.value / 8] >> sample.value % 8 & 1U) != 0;
}

std::size_t JobBoard::others() const {
  const MutexLock lock(mutex_);
  return other_jobs_;
}

}  // namespace leat
