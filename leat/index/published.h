// The catalogue beside the data.
#pragma once
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "leat/base/result.h"
#include "leat/index/build_turn.h"
#include "leat/index/open_catalogue.h"
#include "leat/store/store.h"

namespace leat {

class JobListing;

/// The facts that a search for a published catalogue needs.
struct PublishedPlace {
  Store& store;
  std::string_view prefix;
  /// The path of this dataset in the cache; a copy is kept beside it, so that
  /// it is fetched once for each node and version. Nullopt: kept in memory.
  std::optional<std::string> path;
  Launch launch;
  /// The key of the catalogue; empty: published_key().
  std::string key = {};
  /// One process of each node asks it before it asks the store. May be null.
  JobListing* job = nullptr;
};

/// Opens the catalogue beside the data; nullopt if there is none, or if
/// `options` reject its age or its classes. Blocks.
///
/// `was_refused` is set if the store refused to answer, because there is none
/// or because of the credentials, or if it was not asked. May be null.
/// Errors: as Store::read; kCorrupt if it is damaged, with the remedy
Result<std::optional<OpenedCatalogue>> find_published(
    const PublishedPlace& place, const CatalogueOptions& options,
    const std::stop_token& stop, bool* was_refused = nullptr);

}  // namespace leat
