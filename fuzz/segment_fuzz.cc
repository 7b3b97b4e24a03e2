// A segment file as anybody may have left it in a cache folder.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "leat/base/check.h"
#include "leat/cache/segment.h"

namespace {

/// An entry is trusted only within the bounds of the format.
void check(const leat::Segment& segment, const leat::RecordEntry& entry) {
  LEAT_CHECK(entry.offset >= segment.header().data_begin());
  LEAT_CHECK(entry.offset <= leat::kMostOffset);
  LEAT_CHECK(entry.offset % leat::kPageBytes == 0);
  LEAT_CHECK(entry.length_bytes >= 1);
  LEAT_CHECK(entry.length_bytes <= leat::kMostRecordBytes);
}

/// Bytes that no checksum guards would never be looked into: with the first bit
/// set, the header and the entries get right ones.
void seal(std::span<std::byte> file) {
  const auto seal_block = [&](std::size_t at) {
    const std::span<std::byte> block = file.subspan(at, leat::kEntryBytes);
    const std::uint32_t crc = leat::crc32c(block.first(60));
    for (std::size_t i = 0; i < 4; ++i) {
      block[60 + i] = static_cast<std::byte>(crc >> (8 * i));
    }
  };
  if (file.size() >= leat::kEntryBytes) seal_block(0);
  for (std::size_t at = leat::kPageBytes;
       at + leat::kEntryBytes <= std::min<std::size_t>(file.size(), 64 << 10);
       at += leat::kEntryBytes) {
    seal_block(at);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  if (size < 2) return 0;
  // The index begins a page on: the fuzzer leaves out the bytes between.
  std::vector<std::byte> file(leat::kPageBytes + size);
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  const std::size_t header = std::min<std::size_t>(size - 1, leat::kEntryBytes);
  std::copy_n(bytes + 1, header, file.begin());
  std::copy(bytes + 1 + header, bytes + size, file.begin() + leat::kPageBytes);
  if ((data[0] & 1) != 0) seal(file);

  leat::SystemFileOps ops;
  leat::SegmentFiles::Opened opened{
      .fd = leat::OwnedFd(memfd_create("fuzz", MFD_CLOEXEC)),
      .is_writable = true};
  LEAT_CHECK(leat::write_all(ops, opened.fd.get(), file, 0) == 0);
  std::optional<leat::Segment> segment =
      leat::Segment::open(std::move(opened), ops);
  if (!segment) return 0;
  std::vector<leat::RecordEntry> entries;
  LEAT_CHECK(segment
                 ->follow([&](const leat::RecordEntry& entry) {
                   check(*segment, entry);
                   entries.push_back(entry);
                 })
                 .has_value());
  std::vector<std::byte> body;
  for (const leat::RecordEntry& entry : entries) {
    if (entry.length_bytes > 1 << 16) continue;
    body.resize(entry.length_bytes);
    (void)segment->read(entry.offset, body);
  }
  // Once taken over, it can be written to, and a written record is found again.
  LEAT_CHECK(segment->take_over(1).has_value());
  if (!segment->has_room(4, std::uint64_t{1} << 30)) return 0;
  const leat::RecordKey key{.high = 1, .low = 2};
  if (!segment->append(key, 0, std::as_bytes(std::span("abcd", 4)))) return 0;
  bool is_found = false;
  LEAT_CHECK(segment
                 ->scan([&](const leat::RecordEntry& entry) {
                   check(*segment, entry);
                   is_found = is_found || entry.key == key;
                 })
                 .has_value());
  LEAT_CHECK(is_found);
  return 0;
}
