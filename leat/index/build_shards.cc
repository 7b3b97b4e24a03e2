#include "leat/index/build_shards.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "leat/index/scan_all.h"
#include "leat/index/shard_catalogue.h"

namespace leat {

Result<BuiltCatalogue> build_shards(Store& store, std::string_view prefix,
                                    const SortedObjects& objects,
                                    const IndexOptions& options, EtagKind etags,
                                    IndexProgress now,
                                    const std::stop_token& stop) {
  const std::vector<ShardToScan> shards = shards_to_scan(objects);
  ShardCatalogue catalogue(options.classes, etags);
  now.shards_total = shards.size();
  const auto take = [&](std::size_t index,
                        const ScannedShard& scanned) -> Result<void> {
    if (auto added = catalogue.add(shards[index], scanned); !added) {
      return std::move(added).error().while_doing(fmt::format(
          "scanning {}",
          store.url_of(key_in_store(prefix, shards[index].shard.key))));
    }
    now.shards_done = index + 1;
    now.samples = catalogue.samples();
    if (options.progress) options.progress(now);
    return {};
  };
  LEAT_TRY_VOID(scan_all(store, prefix, shards, options.threads, take, stop));
  return std::move(catalogue).finish(store, prefix, objects, stop);
}

}  // namespace leat
