// Scans any bytes as a TFRecord file. Members must lie inside, for any bytes,
// and a scan must end. Records get the CRCs that they need, so that the code
// behind these is reached.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "leat/codec/tfrecord/tfrecord_scanner.h"

namespace {

void put_crc(std::span<std::byte> file, std::size_t begin, std::size_t end) {
  const std::uint32_t crc =
      leat::tfrecord_crc(file.subspan(begin, end - begin));
  std::memcpy(&file[end], &crc, sizeof(crc));
}

void mend_crcs(std::span<std::byte> file) {
  std::size_t at = 0;
  while (file.size() - at >= 16) {
    std::uint64_t length = 0;
    std::memcpy(&length, &file[at], sizeof(length));
    put_crc(file, at, at + 8);
    if (length > file.size() - at - 16) return;
    put_crc(file, at + 12, at + 12 + length);
    at += 16 + length;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const auto given = std::as_bytes(std::span(data, size));
  std::vector<std::byte> file(given.begin(), given.end());
  // The first byte says whether damage is left in.
  if (size != 0 && data[0] % 8 != 7) mend_crcs(file);
  leat::TfrecordScanner scanner(size);
  std::vector<leat::Member> members;
  std::size_t most_feeds = size / leat::TfrecordScanner::kPieceBytes + 2;
  while (const auto want = scanner.wants()) {
    if (most_feeds-- == 0) std::abort();
    if (want->offset > size || want->length > size - want->offset) std::abort();
    if (!scanner.feed(std::span(file).subspan(want->offset, want->length),
                      members)) {
      break;
    }
  }
  for (const leat::Member& member : members) {
    if (member.offset > size || member.size_bytes > size - member.offset ||
        member.name.empty() || member.field.empty()) {
      std::abort();
    }
  }
  // The same Example, in pieces of another size.
  leat::ExampleWalk whole;
  leat::ExampleWalk parts;
  whole.start(0, size);
  parts.start(0, size);
  const auto walked = whole.walk(given);
  bool is_good = true;
  std::size_t done = 0;
  for (std::size_t there = 0; is_good && done < size; ++there) {
    const auto more =
        parts.walk(given.subspan(done, std::min(there, size) - done));
    is_good = more.has_value();
    if (is_good) done += *more;
  }
  if (is_good != walked.has_value() ||
      (is_good && (*walked != size ||
                   whole.features().size() != parts.features().size()))) {
    std::abort();
  }
  return 0;
}
