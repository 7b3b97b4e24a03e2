#include "leat/cache/segment.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace leat {
namespace {

constexpr std::uint32_t kEntriesAtOnce = 1024;
/// The first read: mostly there is nothing new, or little.
constexpr std::uint32_t kEntriesAtFirst = 4;

std::uint64_t place_of(std::uint32_t entry) {
  return kPageBytes + std::uint64_t{entry} * kEntryBytes;
}

}  // namespace

std::optional<Segment> Segment::open(SegmentFiles::Opened file, FileOps& ops) {
  SegmentBlock block;
  if (read_all(ops, file.fd.get(), block, 0) != 0) return std::nullopt;
  const std::optional<SegmentHeader> header = parse_header(block);
  if (!header) return std::nullopt;
  return Segment(std::move(file), ops, *header);
}

std::optional<FileState> Segment::state_of(int fd, FileOps& ops) {
  SegmentBlock header{};
  SegmentBlock entry{};  // A shorter file counts as having zeros there.
  for (auto& [block, offset] :
       {std::pair{&header, std::uint64_t{0}}, std::pair{&entry, kPageBytes}}) {
    const int error = read_all(ops, fd, *block, offset);
    if (error != 0 && error != -ENODATA) return std::nullopt;
  }
  return file_state(header, entry);
}

SegmentHeader Segment::header_now() const {
  SegmentBlock block;
  if (read(0, block) != 0) return header_;
  return parse_header(block).value_or(header_);
}

int Segment::read(std::uint64_t offset, std::span<std::byte> into) const {
  return read_all(*ops_, fd(), into, offset);
}

void Segment::map(std::uint64_t most_bytes) {
  mapping_ =
      SealedMapping::open(fd(), header_.data_begin() + most_bytes, *ops_);
}

int Segment::read_body(const RecordKey& key, std::uint64_t offset,
                       std::uint32_t body_crc,
                       std::span<std::byte> into) const {
  const std::byte* const mapped =
      mapping_ == nullptr ? nullptr : mapping_->find(offset, into.size());
  if (mapped == nullptr) {
    if (const int error = read(offset, into); error != 0) return error;
    return record_crc(key, into) == body_crc ? 0 : -EBADMSG;
  }
  // The copy is checked, since mapped bytes may change after a check.
  std::memcpy(into.data(), mapped, into.size());
  if (record_crc(key, into) == body_crc) return 0;
  // Most likely it was punched out before, and our look has put zeroed pages
  // there. No byte of a segment is used twice, so these can go again.
  (void)ops_->punch(fd(), offset, whole_pages(into.size()));
  return -EBADMSG;
}

// A file ends where its last body does; bytes past the end count as empty.
Result<std::uint64_t> Segment::walk(std::uint32_t& at,
                                    const Visit& visit) const {
  std::uint64_t bad = 0;
  std::uint32_t bad_at_end = 0;
  std::vector<std::byte> chunk;
  std::uint32_t most = kEntriesAtFirst;
  while (at + bad_at_end < header_.entry_count) {
    const std::uint32_t first = at + bad_at_end;
    const std::uint32_t count = std::min(most, header_.entry_count - first);
    most = std::min(4 * most, kEntriesAtOnce);
    chunk.resize(count * kEntryBytes);
    const ssize_t got = ops_->pread(fd(), chunk, place_of(first));
    if (got < 0) {
      return file_error(static_cast<int>(got),
                        "reading the index of a segment");
    }
    const auto whole = static_cast<std::uint32_t>(got) / kEntryBytes;
    for (std::uint32_t i = 0; i < whole; ++i) {
      RecordEntry entry;
      const std::span<const std::byte, kEntryBytes> bytes(
          chunk.data() + i * kEntryBytes, kEntryBytes);
      const EntryState state = parse_entry(bytes, header_, entry);
      if (state == EntryState::kEmpty) return bad;
      ++bad_at_end;
      if (state == EntryState::kBad && bad_at_end < kEntriesAtOnce) continue;
      if (state == EntryState::kBad) ++bad;  // More than any writer leaves.
      bad += bad_at_end - 1;
      at += std::exchange(bad_at_end, 0);
      if (state == EntryState::kGood) visit(entry);
    }
    if (whole < count) return bad;
  }
  return bad;
}

Result<std::uint64_t> Segment::follow(const Visit& visit) {
  return walk(next_entry_, [&](const RecordEntry& entry) {
    if (entry.kind == RecordEntry::Kind::kDrop) ++dropped_;
    end_ = std::max(end_, entry.offset + whole_pages(entry.length_bytes));
    visit(entry);
  });
}

Result<std::uint64_t> Segment::scan(const Visit& visit) const {
  std::uint32_t at = 0;
  return walk(at, visit);
}

bool Segment::has_room(std::uint64_t length_bytes,
                       std::uint64_t most_bytes) const {
  const std::uint32_t alive = next_entry_ - std::min(next_entry_, 2 * dropped_);
  const std::uint64_t needed = std::uint64_t{next_entry_} + alive + 2;
  if (needed > header_.entry_count || end_ > kMostOffset) return false;
  const std::uint64_t written = end_ - header_.data_begin();
  return written == 0 || written + whole_pages(length_bytes) <= most_bytes;
}

Result<void> Segment::sign(std::uint64_t owner, std::uint64_t leased_bytes) {
  SegmentHeader mine = header_;
  mine.owner = owner;
  mine.leased_bytes = leased_bytes;
  if (mine == header_) return {};
  const int error = write_all(*ops_, fd(), encode(mine), 0);
  if (error != 0) return file_error(error, "writing the header of a segment");
  header_ = mine;
  return {};
}

Result<void> Segment::append_entry(const RecordEntry& entry) {
  const int error =
      write_all(*ops_, fd(), encode(entry), place_of(next_entry_));
  if (error != 0) return file_error(error, "writing the index of a segment");
  ++next_entry_;
  return {};
}

Result<RecordEntry> Segment::append(const RecordKey& key, std::uint64_t source,
                                    std::span<const std::byte> body) {
  const RecordEntry entry{.kind = RecordEntry::Kind::kPut,
                          .key = key,
                          .source = source,
                          .offset = end_,
                          .length_bytes = body.size(),
                          .body_crc = record_crc(key, body)};
  if (const int error = write_all(*ops_, fd(), body, end_); error != 0) {
    // The bytes that were written would take room that nobody counts.
    (void)punch(end_, end_ + body.size());
    return file_error(error, "writing a record to a segment");
  }
  LEAT_TRY_VOID(append_entry(entry));
  end_ += whole_pages(body.size());
  return entry;
}

Result<void> Segment::drop(const RecordEntry& record) {
  RecordEntry entry = record;
  entry.kind = RecordEntry::Kind::kDrop;
  // A hostile index can be full, and any disk can. The hole tells the same,
  // only later.
  if (next_entry_ < header_.entry_count && append_entry(entry)) ++dropped_;
  return punch(entry.offset, entry.offset + entry.length_bytes);
}

Result<void> Segment::punch(std::uint64_t begin, std::uint64_t end) {
  if (begin >= end) return {};
  const int error = ops_->punch(fd(), begin, whole_pages(end - begin));
  if (error != 0) return file_error(error, "punching a record out");
  return {};
}

std::uint64_t Segment::allocated_bytes() const {
  struct stat now {};
  if (::fstat(fd(), &now) != 0) return 0;
  return static_cast<std::uint64_t>(now.st_blocks) * 512;
}

std::uint64_t Segment::index_bytes() const {
  return whole_pages(place_of(next_entry_));
}

std::uint64_t Segment::file_bytes() const {
  struct stat now {};
  if (::fstat(fd(), &now) != 0) return 0;
  return static_cast<std::uint64_t>(now.st_size);
}

}  // namespace leat
