// Scans any bytes as a tar archive. Members must lie inside, for any bytes, and
// a scan must end. Headers get the checksum they need, so that the code behind
// the checksum is reached.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leat/codec/tar/tar_scanner.h"

namespace {

void mend_checksums(std::span<char> archive) {
  for (std::size_t at = 0; at + 512 <= archive.size(); at += 512) {
    const auto block = archive.subspan(at, 512);
    const std::string_view text(block.data(), block.size());
    if (text.substr(257, 5) != "ustar") continue;
    std::memset(&block[148], ' ', 8);
    unsigned sum = 0;
    for (const char c : block) sum += static_cast<unsigned char>(c);
    std::snprintf(&block[148], 7, "%06o", sum);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  std::vector<char> bytes(data, data + size);
  mend_checksums(bytes);
  const auto archive = std::as_bytes(std::span(bytes));
  leat::TarScanner scanner(size);
  std::vector<leat::Member> members;
  // Each feed but a few ends a block further on.
  std::size_t most_feeds = 2 * size / leat::kTarBlockBytes + 4;
  while (const auto want = scanner.wants()) {
    if (most_feeds-- == 0) std::abort();
    if (want->offset > size || want->length > size - want->offset) std::abort();
    if (!scanner.feed(archive.subspan(want->offset, want->length), members)) {
      break;
    }
  }
  std::uint64_t end = 0;
  for (const leat::Member& member : members) {
    if (member.offset < end || member.offset > size ||
        member.size_bytes > size - member.offset || member.name.empty() ||
        member.name.front() == '/' ||
        member.name.find("/../") != std::string::npos) {
      std::abort();
    }
    end = member.offset + member.size_bytes;
  }
  return 0;
}
