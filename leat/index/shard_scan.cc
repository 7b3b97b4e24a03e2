#include "leat/index/shard_scan.h"

#include <fmt/format.h>

#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/errors.h"
#include "leat/base/units.h"
#include "leat/dataset/catalogue.h"

namespace leat {
namespace {

/// Larger indexes are passed over: a million members take about 64 MiB.
constexpr std::uint64_t kMostIndexBytes = 64 << 20;

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

Result<std::vector<Member>> read_index(Store& store, const Container& kind,
                                       const ShardToScan& shard,
                                       const std::stop_token& stop) {
  if (shard.index->size_bytes > kMostIndexBytes) {
    return corrupt("it has {}, more than the {} that are read",
                   format_bytes(shard.index->size_bytes),
                   format_bytes(kMostIndexBytes));
  }
  Buffer text(shard.index->size_bytes);
  LEAT_TRY_VOID(read_into(store, *shard.index, 0, text.span(), stop));
  return kind.read_index(as_text(text.span()), shard.shard.size_bytes,
                         [&](std::uint64_t offset, std::span<std::byte> into) {
                           return read_into(store, shard.shard, offset, into,
                                            stop);
                         });
}

/// The members of a shard of `size_bytes`, in order, found by reading all
/// headers.
Result<std::vector<Member>> scan_members(const Container& kind,
                                         std::uint64_t size_bytes,
                                         const ReadShard& read) {
  std::vector<Member> members;
  const auto scanner = kind.scan(size_bytes);
  Buffer piece;
  while (const auto want = scanner->wants()) {
    if (want->length > piece.size()) piece = Buffer(want->length);
    const auto into = piece.span().first(want->length);
    LEAT_TRY_VOID(read(want->offset, into));
    LEAT_TRY_VOID(scanner->feed(into, members));
  }
  return members;
}

Result<ScannedShard> scan(Store& store, const ShardToScan& shard,
                          const ReadShard& read, const std::stop_token& stop) {
  const Container* const kind = container_of(shard.shard.key);
  if (kind == nullptr) {
    return invalid("its name is no shard's");
  }
  ScannedShard scanned;
  if (shard.index && kind->read_index != nullptr) {
    auto members = read_index(store, *kind, shard, stop);
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
  LEAT_TRY(scanned.members, scan_members(*kind, shard.shard.size_bytes, read));
  return scanned;
}

}  // namespace

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
