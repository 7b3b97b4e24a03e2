#include "leat/index/shard_scan.h"

#include <fmt/format.h>

#include <utility>

#include "leat/base/buffer.h"

namespace leat {
namespace {

Result<std::vector<TarMember>> scan(Store& store, const ObjectInfo& shard,
                                    const std::stop_token& stop) {
  std::vector<TarMember> members;
  TarScanner scanner(shard.size_bytes);
  Buffer piece(TarScanner::kPieceBytes);
  while (const auto want = scanner.wants()) {
    if (want->length > piece.size()) piece = Buffer(want->length);
    const auto into = piece.span().first(want->length);
    if (!into.empty()) {  // A store has no empty reads.
      ReadRequest request;
      request.object = {.key = shard.key, .etag = shard.etag};
      request.offset = want->offset;
      request.into = into;
      LEAT_TRY_VOID(read_range(store, std::move(request), stop));
    }
    LEAT_TRY_VOID(scanner.feed(into, members));
  }
  return members;
}

}  // namespace

Result<std::vector<TarMember>> scan_shard(Store& store, const ObjectInfo& shard,
                                          std::stop_token stop) {
  auto members = scan(store, shard, stop);
  if (!members) {
    return std::move(members).error().while_doing(
        fmt::format("scanning {}", store.url_of(shard.key)));
  }
  return members;
}

}  // namespace leat
