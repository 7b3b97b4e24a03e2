// A note beside a kept catalogue: the places of its objects.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "leat/base/result.h"

namespace leat {

/// A place of objects.
struct NotedPlace {
  std::string url;
  /// OpenedStore::identity: the same URL may mean another place later.
  std::string identity;

  friend bool operator==(const NotedPlace&, const NotedPlace&) = default;
};

/// Writes the note of the catalogue at `catalogue_path`. Blocks.
///
/// Errors: as write_catalogue()
Result<void> write_places(const std::string& catalogue_path,
                          const std::vector<NotedPlace>& places);

/// The places that were noted; nullopt if there is no note, or it is no note of
/// this version, or others could have written it. Blocks.
std::optional<std::vector<NotedPlace>> read_places(
    const std::string& catalogue_path);

}  // namespace leat
