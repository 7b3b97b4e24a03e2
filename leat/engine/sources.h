// The notations in which users name one or several places of data.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/engine/dataset.h"
#include "leat/index/selection.h"

namespace leat {

/// Each is a store with its own threads and connections.
inline constexpr std::size_t kMostPlaces = 64;

/// A place, and the part of it that is meant.
struct SourcePlace {
  std::string url;
  Selection selection;
  /// The number of the source that each of the selection's patterns is of.
  std::vector<std::size_t> sources = {};
};

/// The places that the sources stand for, in the order of first appearance.
///
/// Braces are expanded first (brace_expansion.h). Then a source is a folder or
/// a pattern. A pattern has a wildcard (glob.h) behind the bucket, or ends like
/// a file (is_named_as_file(); on this machine the path itself tells). A
/// pattern's place is the folder before its first wildcard; for the patterns of
/// one source, and for all tar shards in a bucket, it is the deepest folder
/// that holds all. A path that exists as written is never a pattern.
///
/// `chosen` is the user's choice for all of them; its patterns are not used.
///
/// Errors:
///   kInvalidArgument  no source, a wildcard in a bucket's name, more than
///                     kMostPlaces; or any of expand_braces and parse_url
Result<std::vector<SourcePlace>> places_of(std::span<const std::string> sources,
                                           const Selection& chosen);

/// True if `url` is a folder and nothing more.
bool is_plain_place(const std::string& url);

/// Opens the samples of all sources, one place after the other.
/// Blocks.
///
/// A place that is meant as a whole is opened by open_dataset(). The catalogue
/// of any other is kept in the user's cache under its patterns, and is never
/// looked for beside the data.
///
/// Errors: as places_of(), open_dataset() and join_datasets(); kInvalidArgument
/// for an object that is in two sources
Result<Dataset> open_sources(std::span<const std::string> sources,
                             const Selection& chosen, const StoreOptions& store,
                             const CatalogueOptions& options, const Env& env,
                             const std::stop_token& stop);

/// The same for windows of tokens: see open_tokens().
Result<Dataset> open_token_sources(std::span<const std::string> sources,
                                   const Selection& chosen,
                                   const StoreOptions& store,
                                   const TokenWindows& windows,
                                   const CatalogueOptions& options,
                                   const Env& env, const std::stop_token& stop);

}  // namespace leat
