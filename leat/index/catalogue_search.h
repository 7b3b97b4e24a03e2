// Which of the catalogues that are there is to be used, if any.
#pragma once
#include <optional>
#include <stop_token>
#include <string>

#include "leat/base/result.h"
#include "leat/index/catalogue_lock.h"
#include "leat/index/open_catalogue.h"
#include "leat/index/published.h"

namespace leat {

/// The result of a search.
struct Sought {
  /// To be used.
  std::optional<OpenedCatalogue> good;
  /// The data has changed since this catalogue, and there is no other.
  std::optional<OpenedCatalogue> outdated;
  /// The identity of the cache's file, before it was looked into.
  std::optional<FileIdentity> before;
  /// The text for the SeenNote of the catalogue that is made now; may be empty.
  std::string seen;
  /// Held until then: other ranks of this node wait for it.
  std::optional<CatalogueLock> turn;
};

/// Looks beside the data, then in the cache. If `options.refresh` is automatic,
/// the store is asked whether the catalogue is still true. One rank of a job's
/// node asks for all. Blocks.
///
/// Errors: kCorrupt, of what was found; kPermissionDenied if the store refuses
/// who is asking, though a catalogue is kept; as Store::list
Result<Sought> seek_catalogue(const PublishedPlace& place,
                              const CatalogueOptions& options,
                              const std::stop_token& stop);

/// The cache's catalogue at `path`; nullopt if none there can be opened, or if
/// it is too old.
///
/// Errors: kCorrupt
Result<std::optional<OpenedCatalogue>> find_cached(
    const std::optional<std::string>& path, const Launch& launch,
    const Refresh& refresh);

/// Keeps a catalogue that is about to be replaced, for epochs that began with
/// it: a few of each place, the latest.
void keep_earlier(const std::optional<std::string>& path,
                  const OpenedCatalogue& outdated);

/// The catalogue of this digest that was kept so; nullopt if there is none.
std::optional<OpenedCatalogue> find_earlier(
    const std::optional<std::string>& path, std::string_view digest);

}  // namespace leat
