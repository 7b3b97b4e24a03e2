// Tar archives. An index beside one is that of NVIDIA DALI: it fits if the
// first and the last member it tells are in the archive with that name and
// size, and the archive ends behind the last.

#include <algorithm>
#include <array>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/errors.h"
#include "leat/codec/tar/tar_header.h"
#include "leat/codec/tar/tar_scanner.h"
#include "leat/index/containers/containers.h"
#include "leat/index/member_index.h"

namespace leat {
namespace {

/// Names longer than this stand in a header of their own.
constexpr std::size_t kMostHeaderName = 100;

/// Errors: kCorrupt if the shard has another member there.
Result<void> check_header(const Member& member, const ReadShard& read) {
  Buffer block(kTarBlockBytes);
  LEAT_TRY_VOID(read(member.offset - kTarBlockBytes, block.span()));
  const Result<TarHeader> header = parse_tar_header(block.span());
  if (!header || header->size_bytes != member.size_bytes ||
      (member.name.size() <= kMostHeaderName && header->name != member.name)) {
    return corrupt("the shard has no member '{}' of {} bytes at byte {}",
                   member.name, member.size_bytes, member.offset);
  }
  return {};
}

/// Errors: kCorrupt if the archive does not end behind `last`.
Result<void> check_end(const Member& last, std::uint64_t size_bytes,
                       const ReadShard& read) {
  const std::uint64_t end =
      (last.offset + last.size_bytes + kTarBlockBytes - 1) / kTarBlockBytes *
      kTarBlockBytes;
  if (end > size_bytes || size_bytes - end < kTarBlockBytes) {
    return corrupt("the shard is cut short behind its last member");
  }
  Buffer blocks(std::min(2 * kTarBlockBytes, size_bytes - end));
  LEAT_TRY_VOID(read(end, blocks.span()));
  if (!is_zero_block(blocks.span())) {
    return corrupt("the shard goes on behind '{}'", last.name);
  }
  return {};
}

Result<std::vector<Member>> read_index(std::string_view text,
                                       std::uint64_t size_bytes,
                                       const ReadShard& read) {
  LEAT_TRY(std::vector<Member> members, parse_member_index(text, size_bytes));
  if (members.empty()) return corrupt("it names no member");
  LEAT_TRY_VOID(check_header(members.front(), read));
  LEAT_TRY_VOID(check_header(members.back(), read));
  LEAT_TRY_VOID(check_end(members.back(), size_bytes, read));
  return members;
}

std::unique_ptr<MemberScanner> scan(std::uint64_t size_bytes) {
  return std::make_unique<TarScanner>(size_bytes);
}

constexpr std::array<std::string_view, 5> kCompressed = {
    ".tar.gz", ".tgz", ".tar.zst", ".tar.xz", ".tar.bz2"};

}  // namespace

constinit const Container kTarContainer = {.ending = ".tar",
                                           .scan = scan,
                                           .read_index = read_index,
                                           .compressed = kCompressed};

}  // namespace leat
