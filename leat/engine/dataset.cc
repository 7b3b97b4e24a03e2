#include "leat/engine/dataset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "leat/base/check.h"
#include "leat/base/errors.h"
#include "leat/dataset/derive.h"
#include "leat/engine/inventory_source.h"
#include "leat/index/freshness.h"
#include "leat/index/snapshot.h"
#include "leat/runtime/log.h"

namespace leat {
namespace {

/// A kept catalogue does not help a user who may not read its objects.
Result<void> check_kept(const OpenedStore& opened, const OpenedCatalogue& found,
                        const std::stop_token& stop) {
  if (found.source != CatalogueSource::kCache) return {};
  return check_access(*opened.store, opened.prefix, *found.catalogue, stop);
}

/// Whether the objects that a kept catalogue names are still the same, if it
/// has so few that asking is cheap; checks access otherwise. Without ETags the
/// table itself had the sizes, and would be read again in vain.
Result<bool> is_still_true(const OpenedStore& opened,
                           const OpenedCatalogue& found, const Refresh& refresh,
                           const std::stop_token& stop) {
  const Catalogue& catalogue = *found.catalogue;
  if (found.source == CatalogueSource::kCache && refresh.is_automatic() &&
      catalogue.objects() <= kMostAskedFor &&
      catalogue.etag_kind() != EtagKind::kNone) {
    auto same = has_true_objects(*opened.store, opened.prefix, catalogue, stop);
    if (same) return same;  // A store that does not tell may give to read.
  }
  LEAT_TRY_VOID(check_kept(opened, found, stop));
  return true;
}

/// The catalogue of a manifest of objects, kept or made.
Result<OpenedCatalogue> find_of_manifest(const OpenedStore& opened,
                                         const MakeCatalogue& make,
                                         const std::string& identity,
                                         const CatalogueOptions& options,
                                         const Env& env,
                                         const std::stop_token& stop) {
  LEAT_TRY(OpenedCatalogue found,
           open_or_make(identity, options, make, env, stop));
  LEAT_TRY(const bool is_true,
           is_still_true(opened, found, options.refresh, stop));
  if (is_true) return found;
  CatalogueOptions anew = options;
  anew.refresh = Refresh::always();
  LEAT_TRY(OpenedCatalogue made, open_or_make(identity, anew, make, env, stop));
  const auto change = change_between(*found.catalogue, *made.catalogue);
  if (change.is_any()) {
    made.note = fmt::format(
        "{}{}{}", made.note, made.note.empty() ? "" : "; ",
        describe(change, opened.store->url_of(opened.prefix), found.listed_at,
                 std::chrono::floor<std::chrono::seconds>(
                     std::chrono::system_clock::now())));
  }
  return made;
}

Result<std::shared_ptr<const Catalogue>> shared(Result<Buffer> file) {
  if (!file) return std::move(file).error();
  LEAT_TRY(Catalogue catalogue, Catalogue::open(*std::move(file)));
  return std::make_shared<const Catalogue>(std::move(catalogue));
}

/// The dataset at `url`, whose catalogue is what `find` finds in its store.
Result<Dataset> open_with(std::string_view url, const StoreOptions& store,
                          const Env& env, const auto& find) {
  auto opening = std::make_shared<Metrics>();
  LEAT_TRY(const OpenedStore opened,
           open_store(url, store, env, opening.get()));
  LEAT_TRY(const OpenedCatalogue found, find(opened));
  return dataset_of(url, store, found, std::move(opening));
}

}  // namespace

Result<Dataset> dataset_of(std::string_view url, const StoreOptions& store,
                           const OpenedCatalogue& found,
                           std::shared_ptr<Metrics> opening) {
  if (!found.note.empty()) log_warning(found.note);
  if (found.catalogue->samples() == 0) {
    return invalid("{} has no samples", url);
  }
  return Dataset{.url = std::string(url),
                 .store_options = store,
                 .catalogue = found.catalogue,
                 .catalogue_source = std::string(to_string(found.source)),
                 .listed_at = found.listed_at,
                 .kept_as = found.kept_as,
                 .parts = {},
                 .opening = std::move(opening)};
}

std::optional<Dataset> earlier_dataset(const Dataset& now,
                                       std::string_view digest,
                                       const Env& env) {
  if (now.kept_as.empty()) return std::nullopt;
  auto found = earlier_catalogue(now.kept_as, {}, digest, env);
  // A catalogue whose classes were given is kept apart.
  if (!found) {
    found =
        earlier_catalogue(now.kept_as, now.catalogue->classes(), digest, env);
  }
  if (!found) return std::nullopt;
  Dataset earlier = now;
  earlier.catalogue = found->catalogue;
  earlier.listed_at = found->listed_at;
  return earlier;
}

Result<Dataset> open_dataset(std::string_view url, const StoreOptions& store,
                             const CatalogueOptions& options, const Env& env,
                             const std::stop_token& stop) {
  return open_with(url, store, env, [&](const OpenedStore& opened) {
    return open_or_build(*opened.store, opened.prefix, opened.identity, options,
                         env, stop);
  });
}

Result<Dataset> open_dataset_of_inventory(std::string_view url,
                                          std::string_view inventory_url,
                                          const StoreOptions& store,
                                          const CatalogueOptions& options,
                                          const Env& env,
                                          const std::stop_token& stop) {
  const auto find = [&](const OpenedStore& opened) -> Result<OpenedCatalogue> {
    CatalogueOptions with_objects = options;
    LEAT_TRY(with_objects.index.objects,
             objects_of_inventory(inventory_url, opened, store, env));
    if (options.refresh.is_automatic() || options.refresh.is_always()) {
      // A missing inventory matters only if a catalogue has to be made of it.
      auto version = version_of_inventory(inventory_url, store, env, stop);
      if (version) with_objects.index.objects_version = *std::move(version);
    }
    return open_or_build(*opened.store, opened.prefix, opened.identity,
                         with_objects, env, stop);
  };
  return open_with(url, store, env, find);
}

Result<Dataset> open_dataset_as_of(std::string_view url,
                                   std::string_view snapshot,
                                   const StoreOptions& store, const Env& env,
                                   const std::stop_token& stop) {
  return open_with(url, store, env, [&](const OpenedStore& opened) {
    return open_snapshot(*opened.store, opened.prefix, opened.identity,
                         snapshot, env, stop);
  });
}

Result<Dataset> open_manifest(std::span<const std::string> places,
                              const StoreOptions& store,
                              const MakeManifest& make,
                              std::string_view description,
                              const CatalogueOptions& options, const Env& env,
                              std::stop_token stop) {
  LEAT_CHECK(!places.empty());
  auto opening = std::make_shared<Metrics>();
  std::vector<StorePlace> parts;
  for (const std::string& place : places) parts.push_back({place, store});
  const bool is_joined = parts.size() > 1;
  LEAT_TRY(const OpenedStore opened,
           is_joined ? open_joined_store(parts, env, opening.get())
                     : open_store(places.front(), store, env, opening.get()));
  const std::string identity =
      fmt::format("{}\nmanifest {}", opened.identity, description);
  const MakeCatalogue make_it = [&]() -> Result<BuiltCatalogue> {
    LEAT_TRY(const Manifest manifest, make());
    return build_from_manifest(*opened.store, opened.prefix, manifest,
                               options.index, stop);
  };
  // The sources of derived objects have just been listed, and reading one makes
  // the whole object.
  LEAT_TRY(
      const OpenedCatalogue found,
      store.derivation != nullptr
          ? open_or_make(identity, options, make_it, env, stop)
          : find_of_manifest(opened, make_it, identity, options, env, stop));
  LEAT_TRY(Dataset dataset,
           dataset_of(fmt::format("{}", fmt::join(places, " + ")), store, found,
                      std::move(opening)));
  if (is_joined) dataset.parts = std::move(parts);
  return dataset;
}

Result<Dataset> open_tokens(std::string_view url, const StoreOptions& store,
                            const TokenWindows& windows,
                            const CatalogueOptions& options, const Env& env,
                            std::stop_token stop) {
  return open_with(url, store, env, [&](const OpenedStore& opened) {
    const std::string identity = fmt::format(
        "{}\ntokens kind {} bytes {} windows {} stride {} {}{}",
        opened.identity, static_cast<char>(windows.kind), windows.item_bytes,
        windows.seq_len, windows.stride, options.index.selection.text(),
        windows.eos ? fmt::format(" eos {}", *windows.eos) : "");
    CatalogueOptions of_tokens = options;
    of_tokens.index.selection = selection_of_tokens(options.index.selection);
    of_tokens.make = [&] {
      return build_token_windows(*opened.store, opened.prefix, windows,
                                 of_tokens.index, stop);
    };
    return open_or_build(*opened.store, opened.prefix, identity, of_tokens, env,
                         stop);
  });
}

Result<Dataset> select_samples(const Dataset& from,
                               std::span<const SampleId> samples) {
  if (samples.empty()) {
    return invalid("no sample of {} is left", from.url);
  }
  for (const SampleId sample : samples) {
    if (sample.value < from.catalogue->samples()) continue;
    return invalid("{} has {} samples, and no sample {}", from.url,
                   from.catalogue->samples(), sample.value);
  }
  Dataset selected = from;
  selected.kept_as.clear();
  LEAT_TRY(selected.catalogue,
           shared(select_samples(*from.catalogue, samples)));
  return selected;
}

Result<Dataset> with_classes(const Dataset& from,
                             const std::vector<std::string>& classes) {
  Dataset made = from;
  made.kept_as.clear();
  LEAT_TRY(made.catalogue, shared(with_classes(*from.catalogue, classes)));
  return made;
}

namespace {

/// A catalogue keeps ETags of one kind, or none.
void say_lost_etags(std::span<const Dataset> datasets,
                    const Catalogue& joined) {
  const auto keeps = [](const Dataset& dataset) {
    return dataset.catalogue->etag_kind() != EtagKind::kNone;
  };
  const auto keeper = std::ranges::find_if(datasets, keeps);
  if (joined.etag_kind() != EtagKind::kNone || keeper == datasets.end()) return;
  const auto other = std::ranges::find_if(datasets, [&](const Dataset& one) {
    return one.catalogue->etag_kind() != keeper->catalogue->etag_kind();
  });
  if (!keeps(*other)) {
    log_warning(fmt::format(
        "{} and {} are joined, and the catalogue of {} has no versions "
        "(ETags), so none is checked: an object that is replaced while it is "
        "read is not noticed. Have its store listed: open it with "
        "refresh=\"always\" and without inventory=, or, in a bucket, publish "
        "its catalogue anew with `leat index {} --publish`",
        keeper->url, other->url, other->url, other->url));
    return;
  }
  log_warning(fmt::format(
      "{} and {} are joined, whose versions (ETags) are of different kinds, so "
      "none is checked: an object that is replaced while it is read is not "
      "noticed. Join places of one kind, such as buckets with buckets",
      keeper->url, other->url));
}

}  // namespace

Result<Dataset> join_datasets(std::span<const Dataset> datasets,
                              std::string_view part_field) {
  if (datasets.empty()) {
    return invalid("nothing to join");
  }
  Dataset joined = datasets.front();
  joined.parts.clear();
  joined.url.clear();
  joined.kept_as.clear();
  joined.opening = std::make_shared<Metrics>();
  std::vector<std::shared_ptr<const Catalogue>> catalogues;
  std::vector<std::size_t> places;
  for (const Dataset& dataset : datasets) {
    catalogues.push_back(dataset.catalogue);
    places.push_back(dataset.parts.size());
    if (dataset.opening) joined.opening->take_counters(*dataset.opening);
    joined.listed_at = std::min(joined.listed_at, dataset.listed_at);
    if (dataset.parts.empty()) {
      joined.parts.push_back({dataset.url, dataset.store_options});
    } else {
      joined.parts.insert(joined.parts.end(), dataset.parts.begin(),
                          dataset.parts.end());
    }
    joined.url += (joined.url.empty() ? "" : " + ") + dataset.url;
  }
  LEAT_TRY(Catalogue catalogue,
           join_catalogues(catalogues, places, part_field));
  say_lost_etags(datasets, catalogue);
  joined.catalogue = std::make_shared<const Catalogue>(std::move(catalogue));
  return joined;
}

Result<OpenedStore> open_store_of(const Dataset& dataset, StoreShare share,
                                  const Env& env, Metrics* metrics) {
  const auto within = [&](StoreOptions options) {
    options.max_in_flight = share.max_in_flight;
    options.most_in_flight = share.most_in_flight;
    options.io_threads = share.io_threads;
    if (share.derived_bytes != 0) options.derived_bytes = share.derived_bytes;
    return options;
  };
  if (dataset.parts.empty()) {
    return open_store(dataset.url, within(dataset.store_options), env, metrics);
  }
  std::vector<StorePlace> places = dataset.parts;
  for (StorePlace& place : places) place.options = within(place.options);
  return open_joined_store(places, env, metrics);
}

}  // namespace leat
