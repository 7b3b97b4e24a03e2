#include "leat/index/snapshot.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "leat/base/errors.h"
#include "leat/index/catalogue_file.h"
#include "leat/index/published.h"
#include "leat/runtime/launcher.h"

namespace leat {

std::string snapshot_key(std::string_view prefix, std::string_view name) {
  return key_in_store(prefix, fmt::format(".leat/catalogues/{}", name));
}

Result<OpenedCatalogue> keep_snapshot(Store& store, std::string_view prefix,
                                      const IndexOptions& options,
                                      std::stop_token stop) {
  LEAT_TRY(BuiltCatalogue built, build_catalogue(store, prefix, options, stop));
  OpenedCatalogue kept;
  kept.listed_at = std::chrono::floor<std::chrono::seconds>(
      std::chrono::system_clock::now());
  const std::string key = snapshot_key(
      prefix,
      fmt::format(
          "{:%Y%m%dT%H%M%SZ}",
          fmt::gmtime(std::chrono::system_clock::to_time_t(kept.listed_at))));
  if (auto put = store.write(key, built.bytes.span(), std::move(stop)); !put) {
    return std::move(put).error().while_doing(
        fmt::format("keeping {}", store.url_of(key)));
  }
  kept.note = std::move(built.note);
  LEAT_TRY(Catalogue catalogue, Catalogue::open(std::move(built.bytes)));
  kept.catalogue = std::make_shared<const Catalogue>(std::move(catalogue));
  kept.source = CatalogueSource::kPublished;
  kept.location = store.url_of(key);
  return kept;
}

Result<OpenedCatalogue> open_snapshot(Store& store, std::string_view prefix,
                                      std::string_view identity,
                                      std::string_view name, const Env& env,
                                      const std::stop_token& stop) {
  const Result<Launch> launch = read_launch(env);
  const PublishedPlace place{
      .store = store,
      .prefix = prefix,
      .path = catalogue_cache_path(
          fmt::format("{}\nsnapshot {}", identity, name), env),
      .launch = launch ? *launch : Launch{},
      .key = snapshot_key(prefix, name)};
  CatalogueOptions options;
  options.refresh = Refresh::never();
  LEAT_TRY(std::optional<OpenedCatalogue> found,
           find_published(place, options, stop));
  if (found) return *std::move(found);
  return not_found("{} is not there any more", store.url_of(place.key));
}

}  // namespace leat
