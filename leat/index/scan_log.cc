#include "leat/index/scan_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/hash.h"
#include "leat/base/system_error.h"
#include "leat/index/scan_entries.h"
#include "leat/runtime/trust.h"

namespace leat {
namespace {

constexpr std::uint64_t kListing = 1;
constexpr std::uint64_t kShard = 2;
constexpr std::uint64_t kFailure = 3;
constexpr std::uint64_t kEnd = 4;
/// Another layout of the file gets another number here.
constexpr std::uint64_t kFirstHash = 0x6c65617473636e31;

/// In the place of the kind of the first entry.
constexpr std::string_view kHidden("\0\0\0\0\0\0\0\0", 8);

/// The head of an entry, before its payload.
struct Head {
  std::uint64_t kind = 0;
  std::uint64_t length = 0;
  std::uint64_t hash = 0;
};
static_assert(sizeof(Head) == 24);

std::uint64_t hash_of(std::uint64_t kind, std::span<const std::byte> payload,
                      std::uint64_t before) {
  return xxh3_64(payload, mix64(before + kind));
}

/// False at the end of the file, and where it cannot be read.
bool read_at(int fd, std::uint64_t offset, std::span<std::byte> into) {
  while (!into.empty()) {
    const ssize_t got =
        ::pread(fd, into.data(), into.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    offset += static_cast<std::uint64_t>(got);
    into = into.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

Result<void> write_at(int fd, std::uint64_t offset,
                      std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put =
        ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return system_error(errno, "writing");
    offset += static_cast<std::uint64_t>(put);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return {};
}

std::uint64_t size_of(int fd) {
  struct stat info = {};
  return ::fstat(fd, &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
}

/// A lock on the first byte, which says that its holder waits: beside the flock
/// that says who writes, and like it gone with its process.
struct flock awaiting(short type) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  return lock;
}

}  // namespace

struct ScanLog::RawEntry {
  Head head;
  Buffer payload;
};

ScanLog::ScanLog(std::string path, OwnedFd file)
    : path_(std::move(path)), file_(std::move(file)) {}

Result<std::unique_ptr<ScanLog>> ScanLog::write(const std::string& path,
                                                CatalogueLock lock) {
  LEAT_TRY(OwnedFd file, open_own_file(path, O_RDWR));
  std::unique_ptr<ScanLog> log(new ScanLog(path, std::move(file)));
  log->lock_.emplace(std::move(lock));
  (void)log->read_listing();  // Reads the listing of a process that has died,
                              // if it left one.
  return log;
}

void ScanLog::hide() const {
  if (shards_at_ == 0) return;  // There is no listing.
  (void)write_at(file_.get(), 0, as_bytes(kHidden));
}

Result<void> ScanLog::start(const SortedObjects& objects) {
  next_at_ = 0;
  hash_ = kFirstHash;
  if (shards_at_ != 0 && is_same(objects_, objects)) {
    LEAT_TRY_VOID(append(kListing, pack(objects)));
    rewind();
    return {};
  }
  if (::ftruncate(file_.get(), 0) != 0) {
    return system_error(errno, "emptying " + path_);
  }
  LEAT_TRY_VOID(append(kListing, pack(objects)));
  objects_ = objects;
  listing_hash_ = hash_;
  shards_at_ = next_at_;
  rewind();
  return {};
}

std::unique_ptr<ScanLog> ScanLog::read(const std::string& path) {
  Result<OwnedFd> file = open_own_file(path, O_RDWR);
  // Nobody writes if the lock can be had.
  if (!file || ::flock(file->get(), LOCK_SH | LOCK_NB) == 0 ||
      errno != EWOULDBLOCK) {
    return nullptr;
  }
  std::unique_ptr<ScanLog> log(new ScanLog(path, *std::move(file)));
  return log->read_listing() ? std::move(log) : nullptr;
}

void ScanLog::remove_left(const std::string& path) {
  if (!catalogue_identity(path))
    return;  // The usual case: it asks for no lock.
  // A log that cannot be locked or removed is in nobody's way.
  const Result<std::optional<CatalogueLock>> lock =
      CatalogueLock::try_lock(path);
  if (lock && *lock) ::unlink(path.c_str());
}

bool ScanLog::read_listing() {
  next_at_ = 0;
  hash_ = kFirstHash;
  const std::optional<RawEntry> entry = read_entry();
  if (!entry || entry->head.kind != kListing) return false;
  auto listing = unpack_listing(entry->payload.span());
  if (!listing) return false;
  objects_ = *std::move(listing);
  listing_hash_ = entry->head.hash;
  shards_at_ = sizeof(Head) + entry->payload.size();
  rewind();
  return true;
}

void ScanLog::rewind() {
  next_at_ = shards_at_;
  hash_ = listing_hash_;
  shards_given_ = 0;
}

/// The entry at next_at_, if it is whole.
std::optional<ScanLog::RawEntry> ScanLog::read_entry() {
  RawEntry entry;
  if (!read_at(file_.get(), next_at_,
               std::as_writable_bytes(std::span(&entry.head, 1)))) {
    return std::nullopt;
  }
  const std::uint64_t behind = next_at_ + sizeof(Head);
  const std::uint64_t size = size_of(file_.get());
  if (behind > size || entry.head.length > size - behind) return std::nullopt;
  entry.payload = Buffer(entry.head.length);
  if (!read_at(file_.get(), behind, entry.payload.span()) ||
      hash_of(entry.head.kind, entry.payload.span(), hash_) !=
          entry.head.hash) {
    return std::nullopt;
  }
  return entry;
}

/// Somebody has begun the file anew, with another listing.
bool ScanLog::is_replaced() const {
  Head head;
  return read_at(file_.get(), 0, std::as_writable_bytes(std::span(&head, 1))) &&
         head.hash != listing_hash_;
}

std::optional<ScanEntry> ScanLog::next() {
  const std::optional<RawEntry> raw = read_entry();
  ScanEntry entry;
  if (!raw) {
    if (is_writer() || !is_replaced()) return std::nullopt;
    entry.kind = ScanEntry::Kind::kFailed;
    entry.error.emplace(ErrorCode::kUnavailable,
                        "the shards changed while they were being indexed: "
                        "another process of this node has listed others; start "
                        "again");
    return entry;
  }
  const auto payload = raw->payload.span();
  if (raw->head.kind == kShard && shards_given_ < objects_.data.size()) {
    auto shard = unpack_shard(payload);
    if (!shard) return std::nullopt;
    entry.shard = *std::move(shard);
    ++shards_given_;
  } else if (raw->head.kind == kFailure && !is_writer()) {
    entry.kind = ScanEntry::Kind::kFailed;
    entry.error = unpack_failure(payload);
    if (!entry.error) return std::nullopt;
  } else if (raw->head.kind == kEnd && !is_writer()) {
    entry.kind = ScanEntry::Kind::kEnd;
  } else {
    return std::nullopt;
  }
  next_at_ += sizeof(Head) + payload.size();
  hash_ = raw->head.hash;
  return entry;
}

ScanLog::Turn ScanLog::take_turn() {
  if (lock_) return Turn::kOurs;
  struct stat info = {};
  const auto is_there = [&] {
    const auto there = catalogue_identity(path_);
    return there && ::fstat(file_.get(), &info) == 0 &&
           *there == FileIdentity{.device = info.st_dev, .inode = info.st_ino};
  };
  if (!is_there()) return Turn::kNobodys;
  Result<std::optional<CatalogueLock>> lock = CatalogueLock::try_lock(path_);
  if (!lock) return Turn::kNobodys;
  if (!*lock) return Turn::kOthers;
  if (!is_there()) return Turn::kNobodys;
  lock_.emplace(**std::move(lock));
  return Turn::kOurs;
}

Result<void> ScanLog::append(std::uint64_t kind, std::string_view payload) {
  const Head head{.kind = kind,
                  .length = payload.size(),
                  .hash = hash_of(kind, as_bytes(payload), hash_)};
  Buffer entry(sizeof(head) + payload.size());
  std::memcpy(entry.data(), &head, sizeof(head));
  std::memcpy(entry.data() + sizeof(head), payload.data(), payload.size());
  if (auto put = write_at(file_.get(), next_at_, entry.span()); !put) {
    return std::move(put).error().while_doing(path_);
  }
  next_at_ += entry.size();
  hash_ = head.hash;
  return {};
}

Result<void> ScanLog::append(const ScannedShard& shard) {
  return append(kShard, pack(shard));
}

Result<void> ScanLog::append(const Error& error) {
  return append(kFailure, pack(error));
}

void ScanLog::end() {
  // A reader that is not told finds the file gone; the entries it has are then
  // all there are.
  (void)append(kEnd, "");
  remove();
}

void ScanLog::remove() {
  ::unlink(path_.c_str());
  lock_.reset();
}

void ScanLog::say_awaited(bool is_awaited) const {
  struct flock lock = awaiting(is_awaited ? F_RDLCK : F_UNLCK);
  (void)::fcntl(file_.get(), F_OFD_SETLK, &lock);
}

bool ScanLog::is_awaited() const {
  struct flock lock = awaiting(F_WRLCK);
  return ::fcntl(file_.get(), F_OFD_GETLK, &lock) != 0 ||
         lock.l_type != F_UNLCK;
}

}  // namespace leat
