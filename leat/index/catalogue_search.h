// Decides which existing catalogue to use, if any.
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
  /// The catalogue to use.
  std::optional<OpenedCatalogue> good;
  /// The data has changed since this catalogue, and there is no other.
  std::optional<OpenedCatalogue> outdated;
  /// The identity of the cache's file before it was read.
  std::optional<FileIdentity> before;
  /// The text for the SeenNote of the catalogue that is made now; may be empty.
  std::string seen;
  /// Held until then: other ranks of this node wait for it.
  std::optional<CatalogueLock> turn;
};

/// Looks beside the data, then in the cache. If `options.refresh` is automatic,
/// asks the store whether the catalogue is still valid. One rank of a job's
/// node asks for all of them. Blocks.
///
/// Errors: kCorrupt, for what was found; kPermissionDenied if the store refuses
/// the user, even though a catalogue is kept; as Store::list
Result<Sought> seek_catalogue(const PublishedPlace& place,
                              const CatalogueOptions& options,
                              const std::stop_token& stop);

/// The cache's catalogue at `path`; nullopt if none there can be opened, or it
/// is too old.
///
/// Errors: kCorrupt
Result<std::optional<OpenedCatalogue>> find_cached(
    const std::optional<std::string>& path, const Launch& launch,
    const Refresh& refresh);

/// Keeps a catalogue that is about to be replaced, for epochs that began with
/// it: the latest few of each place.
void keep_earlier(const std::optional<std::string>& path,
                  const OpenedCatalogue& outdated);

/// The catalogue with this digest that was kept so; nullopt if there is none.
std::optional<OpenedCatalogue> find_earlier(
    const std::optional<std::string>& path, std::string_view digest);

}  // namespace leat
