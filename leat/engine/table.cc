#include "leat/engine/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "leat/base/check.h"
#include "leat/index/catalogue_file.h"
#include "leat/index/freshness.h"
#include "leat/index/places_note.h"

namespace leat {
namespace {

/// The store of all objects that a table names.
struct TableStore {
  std::vector<StorePlace> places;
  OpenedStore opened;
  std::vector<NotedPlace> noted;
};

Result<TableStore> open_places(const std::vector<std::string>& urls,
                               const StoreOptions& store, const Env& env,
                               Metrics* opening) {
  LEAT_CHECK(!urls.empty());
  std::vector<StorePlace> places;
  std::vector<NotedPlace> noted;
  for (const std::string& url : urls) {
    places.push_back({url, store});
    LEAT_TRY(const OpenedStore one, open_store(url, store, env, nullptr));
    noted.push_back({url, one.identity});
  }
  LEAT_TRY(OpenedStore opened,
           places.size() > 1 ? open_joined_store(places, env, opening)
                             : open_store(urls.front(), store, env, opening));
  return TableStore{.places = std::move(places),
                    .opened = std::move(opened),
                    .noted = std::move(noted)};
}

/// The places that were noted with a kept catalogue; nullopt if that is another
/// one than `read` would give now, since a URL leads elsewhere.
std::optional<TableStore> noted_places(const OpenedCatalogue& kept,
                                       const StoreOptions& store,
                                       const Env& env, Metrics* opening) {
  const auto noted = read_places(kept.file);
  if (!noted) return std::nullopt;
  std::vector<std::string> urls;
  for (const NotedPlace& place : *noted) urls.push_back(place.url);
  Result<TableStore> opened = open_places(urls, store, env, opening);
  if (!opened || opened->noted != *noted) return std::nullopt;
  return *std::move(opened);
}

/// Reads the table, and makes its catalogue.
class TableReader {
 public:
  TableReader(const StoreOptions& store, const ReadTable& read,
              std::string identity, const CatalogueOptions& options,
              const Env& env, Metrics* opening)
      : store_(store),
        read_(read),
        identity_(std::move(identity)),
        options_(options),
        env_(env),
        opening_(opening) {}

  Result<OpenedCatalogue> open(Refresh refresh, const std::stop_token& stop) {
    CatalogueOptions options = options_;
    options.refresh = refresh;
    return open_or_make(
        identity_, options, [&] { return make(stop); }, env_, stop);
  }

  /// The places of its objects, if this process has made it.
  std::optional<TableStore>& places() { return places_; }

 private:
  Result<BuiltCatalogue> make(const std::stop_token& stop) {
    LEAT_TRY(TableRows table, read_());
    LEAT_TRY(places_, open_places(table.places, store_, env_, opening_));
    OpenedStore& opened = places_->opened;
    LEAT_TRY(BuiltCatalogue built,
             std::move(table.rows)
                 .finish(*opened.store, opened.prefix, table.places.size() > 1,
                         options_.index, stop));
    // Without the note, which is there before the catalogue, nobody uses it.
    if (const auto path = catalogue_cache_path(identity_, env_)) {
      (void)write_places(*path, places_->noted);  // Then it is read again.
    }
    return built;
  }

  const StoreOptions& store_;
  const ReadTable& read_;
  const std::string identity_;
  const CatalogueOptions& options_;
  const Env& env_;
  Metrics* const opening_;
  std::optional<TableStore> places_;
};

/// Whether the objects that a kept catalogue names are still the same, if it
/// has so few that asking is cheap; checks access otherwise. Without ETags the
/// table itself had the sizes, and would be read again in vain.
Result<bool> is_still_true(const OpenedStore& opened,
                           const OpenedCatalogue& found, const Refresh& refresh,
                           const std::stop_token& stop) {
  if (found.source != CatalogueSource::kCache) return true;
  const Catalogue& catalogue = *found.catalogue;
  if (refresh.is_automatic() && catalogue.objects() <= kMostAskedFor &&
      catalogue.etag_kind() != EtagKind::kNone) {
    auto same = has_true_objects(*opened.store, opened.prefix, catalogue, stop);
    if (same) return same;  // A store that does not tell may give to read.
  }
  LEAT_TRY_VOID(check_access(*opened.store, opened.prefix, catalogue, stop));
  return true;
}

/// Tells people of the change, if there is one.
std::string change_of(const OpenedCatalogue& before,
                      const OpenedCatalogue& made, const OpenedStore& opened) {
  const auto change = change_between(*before.catalogue, *made.catalogue);
  if (!change.is_any()) return made.note;
  return fmt::format(
      "{}{}{}", made.note, made.note.empty() ? "" : "; ",
      describe(change, opened.store->url_of(opened.prefix), before.listed_at,
               std::chrono::floor<std::chrono::seconds>(
                   std::chrono::system_clock::now())));
}

}  // namespace

Result<Dataset> open_table(const StoreOptions& store, const ReadTable& read,
                           std::string_view description,
                           const CatalogueOptions& options, const Env& env,
                           const std::stop_token& stop) {
  auto opening = std::make_shared<Metrics>();
  TableReader table(store, read, fmt::format("table {}", description), options,
                    env, opening.get());
  LEAT_TRY(OpenedCatalogue found, table.open(options.refresh, stop));
  std::optional<TableStore> places = std::move(table.places());
  if (!places) places = noted_places(found, store, env, opening.get());
  if (!places) {
    LEAT_TRY(found, table.open(Refresh::always(), stop));
    places = std::move(table.places());
    if (!places) places = noted_places(found, store, env, opening.get());
  }
  if (!places) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("the places of a table's objects cannot be kept "
                             "beside {}; set LEAT_CACHE_DIR to a folder that "
                             "can be written",
                             found.location));
  }
  LEAT_TRY(const bool is_true,
           is_still_true(places->opened, found, options.refresh, stop));
  if (!is_true) {
    const OpenedCatalogue before = found;
    LEAT_TRY(found, table.open(Refresh::always(), stop));
    if (table.places()) places = std::move(table.places());
    found.note = change_of(before, found, places->opened);
  }
  std::vector<std::string> urls;
  for (const StorePlace& place : places->places) urls.push_back(place.url);
  LEAT_TRY(Dataset dataset,
           dataset_of(fmt::format("{}", fmt::join(urls, " + ")), store, found,
                      std::move(opening)));
  if (places->places.size() > 1) dataset.parts = std::move(places->places);
  return dataset;
}

}  // namespace leat
