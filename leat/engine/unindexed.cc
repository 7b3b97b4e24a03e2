#include "leat/engine/unindexed.h"

#include <algorithm>
#include <utility>

#include "leat/index/listing.h"
#include "leat/runtime/launcher.h"

namespace leat {
namespace {

bool may_be_indexed_meanwhile(const LoaderOptions& options, const Env& env) {
  if (options.shuffle != ShuffleChoice::kStream || options.pad ||
      options.cache) {
    return false;
  }
  if (options.rank) return options.rank->world_size == 1;
  const Result<Launch> launch = read_launch(env);
  return launch && launch->rank.world_size == 1;
}

bool has_no_index(const SortedObjects& objects) {
  return objects.layout == Layout::kShards &&
         std::ranges::none_of(objects.data, [&](const ObjectInfo& shard) {
           return member_index_of(shard, objects.companions) != nullptr;
         });
}

void add_object(Hasher128& hasher, std::string_view key, std::uint64_t size) {
  hasher.update(std::uint64_t{key.size()});
  hasher.update(as_bytes(key));
  hasher.update(size);
}

}  // namespace

Result<LoaderSource> open_for_loader(
    std::string_view url, const StoreOptions& store,
    const CatalogueOptions& options, const LoaderOptions& loader,
    const Env& env, const std::stop_token& stop, Metrics* metrics) {
  const auto open_it =
      [&](const CatalogueOptions& how) -> Result<LoaderSource> {
    LEAT_TRY(Dataset dataset,
             open_dataset(url, store, how, env, stop, metrics));
    return LoaderSource(std::move(dataset));
  };
  if (!may_be_indexed_meanwhile(loader, env)) return open_it(options);
  LEAT_TRY(const OpenedStore opened, open_store(url, store, env, metrics));
  LEAT_TRY(const auto found,
           find_catalogue(*opened.store, opened.prefix, opened.identity,
                          options, env, stop));
  if (found || !opened.store->traits().can_list) return open_it(options);
  auto listed = list_data(*opened.store, opened.prefix, {}, stop);
  if (!listed) return open_it(options);  // It will say what is wrong.
  Result<SortedObjects> objects = sort_objects(*listed);
  if (objects && has_no_index(*objects)) {
    return LoaderSource(UnindexedShards{.url = opened.url,
                                        .store_options = store,
                                        .catalogue_options = options,
                                        .objects = *std::move(objects)});
  }
  // Not listed again.
  CatalogueOptions with_objects = options;
  with_objects.index.objects = [&](const std::stop_token&) {
    return Result<std::vector<ObjectInfo>>(*listed);
  };
  return open_it(with_objects);
}

Hash128 listing_digest(const SortedObjects& objects) {
  Hasher128 hasher;
  for (const ObjectInfo& object : objects.data) {
    add_object(hasher, object.key, object.size_bytes);
  }
  return hasher.digest();
}

Hash128 listing_digest(const Catalogue& catalogue) {
  Hasher128 hasher;
  for (std::uint64_t i = 0; i < catalogue.objects(); ++i) {
    const ObjectView object =
        catalogue.object(ObjectIndex{static_cast<std::uint32_t>(i)});
    add_object(hasher, object.key, object.size_bytes);
  }
  return hasher.digest();
}

}  // namespace leat
