#include "leat/index/shard_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/units.h"
#include "leat/codec/tar/tar_header.h"
#include "leat/dataset/catalogue.h"
#include "leat/index/member_index.h"

namespace leat {
namespace {

using Members = std::vector<TarMember>;

/// Larger indexes are passed over: a million members take about 64 MiB.
constexpr std::uint64_t kMostIndexBytes = 64 << 20;
/// Names longer than this stand in a header of their own.
constexpr std::size_t kMostHeaderName = 100;

Result<void> read_into(Store& store, const ObjectInfo& object,
                       std::uint64_t offset, std::span<std::byte> into,
                       const std::stop_token& stop) {
  if (into.empty()) return {};  // A store has no empty reads.
  ReadRequest request;
  request.object = {.key = object.key, .etag = object.etag};
  request.offset = offset;
  request.into = into;
  return read_range(store, std::move(request), stop);
}

Error unfit(std::string why) {
  return Error(ErrorCode::kCorrupt, std::move(why));
}

/// Errors: kCorrupt if the shard has another member there.
Result<void> check_header(Store& store, const ObjectInfo& shard,
                          const TarMember& member,
                          const std::stop_token& stop) {
  Buffer block(kTarBlockBytes);
  LEAT_TRY_VOID(read_into(store, shard, member.offset - kTarBlockBytes,
                          block.span(), stop));
  const Result<TarHeader> header = parse_tar_header(block.span());
  if (!header || header->size_bytes != member.size_bytes ||
      (member.name.size() <= kMostHeaderName && header->name != member.name)) {
    return unfit(
        fmt::format("the shard has no member '{}' of {} bytes at byte {}",
                    member.name, member.size_bytes, member.offset));
  }
  return {};
}

/// Errors: kCorrupt if the archive does not end behind `last`.
Result<void> check_end(Store& store, const ObjectInfo& shard,
                       const TarMember& last, const std::stop_token& stop) {
  const std::uint64_t end =
      (last.offset + last.size_bytes + kTarBlockBytes - 1) / kTarBlockBytes *
      kTarBlockBytes;
  if (end > shard.size_bytes || shard.size_bytes - end < kTarBlockBytes) {
    return unfit("the shard is cut short behind its last member");
  }
  Buffer blocks(std::min(2 * kTarBlockBytes, shard.size_bytes - end));
  LEAT_TRY_VOID(read_into(store, shard, end, blocks.span(), stop));
  if (!is_zero_block(blocks.span())) {
    return unfit(fmt::format("the shard goes on behind '{}'", last.name));
  }
  return {};
}

Result<Members> read_index(Store& store, const ShardToScan& shard,
                           const std::stop_token& stop) {
  if (shard.index->size_bytes > kMostIndexBytes) {
    return unfit(fmt::format("it has {}, more than the {} that are read",
                             format_bytes(shard.index->size_bytes),
                             format_bytes(kMostIndexBytes)));
  }
  Buffer text(shard.index->size_bytes);
  LEAT_TRY_VOID(read_into(store, *shard.index, 0, text.span(), stop));
  LEAT_TRY(Members members,
           parse_member_index(as_text(text.span()), shard.shard.size_bytes));
  if (members.empty()) return unfit("it names no member");
  LEAT_TRY_VOID(check_header(store, shard.shard, members.front(), stop));
  LEAT_TRY_VOID(check_header(store, shard.shard, members.back(), stop));
  LEAT_TRY_VOID(check_end(store, shard.shard, members.back(), stop));
  return members;
}

Result<ScannedShard> scan(Store& store, const ShardToScan& shard,
                          const ReadShard& read, const std::stop_token& stop) {
  ScannedShard scanned;
  if (shard.index) {
    Result<Members> members = read_index(store, shard, stop);
    if (members) {
      scanned.members = *std::move(members);
      return scanned;
    }
    if (members.error().code() == ErrorCode::kCancelled) {
      return std::move(members).error();
    }
    scanned.note = fmt::format("{}: {}", store.url_of(shard.index->key),
                               members.error().message());
  }
  LEAT_TRY(scanned.members, scan_members(shard.shard.size_bytes, read));
  return scanned;
}

}  // namespace

Result<std::vector<TarMember>> scan_members(std::uint64_t size_bytes,
                                            const ReadShard& read) {
  Members members;
  TarScanner scanner(size_bytes);
  Buffer piece(TarScanner::kPieceBytes);
  while (const auto want = scanner.wants()) {
    if (want->length > piece.size()) piece = Buffer(want->length);
    const auto into = piece.span().first(want->length);
    LEAT_TRY_VOID(read(want->offset, into));
    LEAT_TRY_VOID(scanner.feed(into, members));
  }
  return members;
}

ShardToScan in_store(std::string_view prefix, ShardToScan shard) {
  shard.shard.key = key_in_store(prefix, shard.shard.key);
  if (shard.index) shard.index->key = key_in_store(prefix, shard.index->key);
  return shard;
}

Result<ScannedShard> scan_shard(Store& store, const ShardToScan& shard,
                                const std::stop_token& stop) {
  return scan_shard(
      store, shard,
      [&](std::uint64_t offset, std::span<std::byte> into) {
        return read_into(store, shard.shard, offset, into, stop);
      },
      stop);
}

Result<ScannedShard> scan_shard(Store& store, const ShardToScan& shard,
                                const ReadShard& read,
                                const std::stop_token& stop) {
  auto scanned = scan(store, shard, read, stop);
  if (!scanned) {
    return std::move(scanned).error().while_doing(
        fmt::format("scanning {}", store.url_of(shard.shard.key)));
  }
  return scanned;
}

}  // namespace leat
