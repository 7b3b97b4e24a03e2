// Finds the catalogue of a dataset, or makes it.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/env.h"
#include "leat/base/result.h"
#include "leat/dataset/catalogue.h"
#include "leat/index/build.h"
#include "leat/index/build_turn.h"
#include "leat/index/refresh.h"
#include "leat/store/store.h"

namespace leat {

class ListingBoard;
class ScanBoard;

/// Makes the bytes of a catalogue. Blocks.
using MakeCatalogue = std::function<Result<BuiltCatalogue>()>;

struct CatalogueOptions {
  IndexOptions index;
  TurnTimes times;
  /// When to list even though there is a catalogue.
  Refresh refresh = Refresh::automatic();
  /// Makes the catalogue instead of build_catalogue(), of all objects that
  /// `index.selection` takes. May be empty.
  MakeCatalogue make = {};
  /// The other nodes of the job, which then use one listing. May be null.
  std::shared_ptr<ListingBoard> job = {};
  /// The ranks of the job, which index a stream's shards together. May be null.
  std::shared_ptr<ScanBoard> scans = {};
};

/// The origin of a catalogue.
enum class CatalogueSource : std::uint8_t {
  kPublished,  ///< Beside the data.
  kCache,      ///< This user's cache folder.
  kBuilt,      ///< Made just now.
};

/// "published", "cache", "built".
std::string_view to_string(CatalogueSource source);

struct OpenedCatalogue {
  std::shared_ptr<const Catalogue> catalogue;
  CatalogueSource source = CatalogueSource::kBuilt;
  /// The URL or path of the catalogue; empty if it is in memory alone.
  std::string location;
  /// A note for the user, though nothing failed; empty if there is none. To be
  /// logged once.
  std::string note;
  /// When the data was listed; the epoch if unknown.
  std::chrono::sys_seconds listed_at{};
  /// Its file on this machine; empty if it may have none.
  std::string file;
  /// The identity under which the cache keeps it and earlier ones of its place,
  /// for each list of classes; empty if no earlier ones are kept.
  std::string kept_as;
};

/// The key of the catalogue kept beside the data.
std::string published_key(std::string_view prefix);

/// Finds the catalogue of `prefix`: beside the data, or in the user's cache;
/// otherwise makes it and puts it into the cache. Blocks.
///
/// If many processes of a node find no catalogue, one makes it: the first to
/// lock the cache's file, where local rank 0 has a head start. The others wait
/// for it, and take over if it dies. With `options.job`, the nodes of a job do
/// the same among each other (index/job_listing.h). Nothing is put beside the
/// data.
///
/// `identity` names the place for the cache: the URL, and the endpoint if it is
/// not the usual one; no credentials. A cache that cannot be written causes a
/// note, not an error.
///
/// Errors:
///   kNotFound  nothing is there, or no catalogue is and the store cannot list
///   kCorrupt   the catalogue found is damaged; the message says how to renew
///   it or any of build_catalogue()
Result<OpenedCatalogue> open_or_build(Store& store, std::string_view prefix,
                                      std::string_view identity,
                                      const CatalogueOptions& options,
                                      const Env& env,
                                      const std::stop_token& stop);

struct FoundCatalogue {
  std::optional<OpenedCatalogue> good;
  /// A catalogue exists, but the data has changed since.
  std::optional<OpenedCatalogue> outdated;
};

/// The part of open_or_build() that makes nothing. Errors: as there
Result<FoundCatalogue> find_catalogue(Store& store, std::string_view prefix,
                                      std::string_view identity,
                                      const CatalogueOptions& options,
                                      const Env& env,
                                      const std::stop_token& stop);

/// Puts a catalogue made elsewhere into the cache, where open_or_build() finds
/// it by this identity and these classes. Blocks. A failed write becomes a
/// note.
///
/// Errors: as Catalogue::open
Result<OpenedCatalogue> keep_catalogue(BuiltCatalogue built,
                                       std::string_view identity,
                                       const std::vector<std::string>& classes,
                                       const Env& env);

/// The cache's catalogue with this identity and these classes; nullopt if none
/// can be opened. Blocks.
///
/// Errors: kCorrupt, as in open_or_build()
Result<std::optional<OpenedCatalogue>> kept_catalogue(
    std::string_view identity, const std::vector<std::string>& classes,
    const Env& env);

/// A catalogue that was replaced later, by its digest, for epochs that began
/// with it; nullopt if it is gone. Blocks.
std::optional<OpenedCatalogue> earlier_catalogue(
    std::string_view identity, const std::vector<std::string>& classes,
    std::string_view digest, const Env& env);

/// The path of that catalogue, present or future; nullopt if the environment
/// names no folder.
std::optional<std::string> kept_catalogue_path(
    std::string_view identity, const std::vector<std::string>& classes,
    const Env& env);

/// Finds the catalogue of `identity` in the user's cache, or makes it and puts
/// it there, once for all processes of this node: for datasets that are not
/// defined by a place. Automatic means never: the caller checks. Blocks.
///
/// Errors: kCorrupt, for what was found; kCancelled; any from `make`
Result<OpenedCatalogue> open_or_make(std::string_view identity,
                                     const CatalogueOptions& options,
                                     const MakeCatalogue& make, const Env& env,
                                     const std::stop_token& stop);

/// Lists again and puts the catalogue beside the data, for everyone. Blocks.
///
/// On a file system ETags are left out: they depend on when a file was written,
/// so a copy of the folder would seem changed.
/// Errors: as build_catalogue() and Store::write.
Result<OpenedCatalogue> publish_catalogue(Store& store, std::string_view prefix,
                                          const IndexOptions& options,
                                          std::stop_token stop);

}  // namespace leat
