// A dataset: its catalogue and the way to reach its objects.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/env.h"
#include "leat/base/result.h"
#include "leat/dataset/catalogue.h"
#include "leat/engine/stores.h"
#include "leat/index/manifest.h"
#include "leat/index/open_catalogue.h"
#include "leat/index/tokens.h"

namespace leat {

/// A catalogue and the place of its objects. A value: cheap to copy, and never
/// changes.
struct Dataset {
  /// Without credentials; for a joined dataset, the URLs of all its parts.
  std::string url;
  StoreOptions store_options;
  std::shared_ptr<const Catalogue> catalogue;
  std::string catalogue_source;  ///< The source of the catalogue, readable.
  /// The time when the data was listed; the epoch of the clock if unknown. For
  /// a joined dataset, that of the part that was listed first.
  std::chrono::sys_seconds listed_at{};
  /// OpenedCatalogue::kept_as. Empty if this is not all that a place has: of
  /// samples that were selected, of joined datasets and of a manifest no
  /// earlier catalogue is kept.
  std::string kept_as = {};
  /// The places of a joined dataset, in the order of join_catalogues(); empty
  /// for any other.
  std::vector<StorePlace> parts;
  /// The requests that opening it took. The first loader that reads the dataset
  /// takes them over.
  std::shared_ptr<Metrics> opening;
};

/// The dataset at `url`, with a catalogue that was found. Logs what a user
/// should know. `opening` has counted the requests that found it.
///
/// Errors: kInvalidArgument if there is no sample at all
Result<Dataset> dataset_of(std::string_view url, const StoreOptions& store,
                           const OpenedCatalogue& found,
                           std::shared_ptr<Metrics> opening);

/// The dataset of `now` as its catalogue with this digest had it, which has
/// been replaced since; nullopt if that catalogue is gone. Blocks.
std::optional<Dataset> earlier_dataset(const Dataset& now,
                                       std::string_view digest, const Env& env);

/// Opens the store at `url` and finds its catalogue, or lists the store and
/// writes a catalogue. Blocks.
///
/// Errors: those of parse_url, open_store and open_or_build; kInvalidArgument
/// if there is no sample at all.
Result<Dataset> open_dataset(std::string_view url, const StoreOptions& store,
                             const CatalogueOptions& options, const Env& env,
                             const std::stop_token& stop);

/// Like open_dataset(), but a new catalogue takes its objects from the S3
/// Inventory whose manifest.json is at `inventory_url`. Blocks.
///
/// Errors: as open_dataset() and objects_of_inventory()
Result<Dataset> open_dataset_of_inventory(std::string_view url,
                                          std::string_view inventory_url,
                                          const StoreOptions& store,
                                          const CatalogueOptions& options,
                                          const Env& env,
                                          const std::stop_token& stop);

/// The dataset as the snapshot of this name has it (index/snapshot.h). Blocks.
///
/// Errors: as open_dataset() and open_snapshot()
Result<Dataset> open_dataset_as_of(std::string_view url,
                                   std::string_view snapshot,
                                   const StoreOptions& store, const Env& env,
                                   const std::stop_token& stop);

/// Makes a manifest on demand. Errors: any
using MakeManifest = std::function<Result<Manifest>()>;

/// A dataset whose samples are the rows of a manifest; its keys lie below the
/// one place, or begin with joined_prefix() of one of several. The catalogue is
/// kept in the user's cache under `description`, which has to identify the
/// manifest's contents (by a hash, say); empty: it is not kept. `make` is
/// called if none is kept, on this thread, in one process of this node. Blocks.
///
/// REQUIRES: at least one place.
/// Errors: as open_dataset, build_from_manifest and `make`
Result<Dataset> open_manifest(std::span<const std::string> places,
                              const StoreOptions& store,
                              const MakeManifest& make,
                              std::string_view description,
                              const CatalogueOptions& options, const Env& env,
                              std::stop_token stop);

/// Windows of tokens: see build_token_windows(). `url` is a folder;
/// `options.index.selection` chooses files in it. The catalogue is kept in the
/// user's cache, and checked as that of a folder is. Blocks.
///
/// Errors: as open_or_build() and build_token_windows()
Result<Dataset> open_tokens(std::string_view url, const StoreOptions& store,
                            const TokenWindows& windows,
                            const CatalogueOptions& options, const Env& env,
                            std::stop_token stop);

/// Selects these samples of `from`, in this order.
///
/// Errors:
///   kInvalidArgument  no sample, or one that `from` does not have
Result<Dataset> select_samples(const Dataset& from,
                               std::span<const SampleId> samples);

/// As with_classes() of a catalogue.
Result<Dataset> with_classes(const Dataset& from,
                             const std::vector<std::string>& classes);

/// The samples of all the datasets, one dataset after the other; with
/// `part_field`, as join_catalogues().
///
/// Errors: kInvalidArgument if there is none; as join_catalogues()
Result<Dataset> join_datasets(std::span<const Dataset> datasets,
                              std::string_view part_field = {});

/// The part of a store's limits that one process may use.
struct StoreShare {
  std::size_t max_in_flight = 1;
  std::size_t io_threads = 1;
  std::size_t most_in_flight = 0;  ///< See StoreOptions.
  /// See StoreOptions; 0: its default.
  std::uint64_t derived_bytes = 0;
};

/// Opens the place of a dataset, or all places of a joined one. `share`
/// overrides the dataset's own options.
Result<OpenedStore> open_store_of(const Dataset& dataset, StoreShare share,
                                  const Env& env, Metrics* metrics);

}  // namespace leat
