// Checks whether a catalogue is still valid, with a request or two.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/hash.h"
#include "leat/base/result.h"
#include "leat/dataset/catalogue.h"
#include "leat/store/store.h"

namespace leat {

/// A cheap look at the objects below a prefix: all of a small listing; for a
/// large one, the first page and the objects after the end of a catalogue. A
/// change in the middle of a large listing goes unnoticed.
struct Glimpse {
  /// Without hidden ones; keys relative to the prefix, in byte order.
  std::vector<ObjectInfo> first;
  bool is_all = false;  ///< `first` is the whole listing.
  /// If not: the objects from the last one of the catalogue on.
  std::vector<ObjectInfo> tail;

  Hash128 digest() const;
};

/// Looks. `kept` determines how many pages are worth requesting. Blocks.
///
/// Errors: as Store::list
Result<Glimpse> glimpse_at(Store& store, std::string_view prefix,
                           const Catalogue& kept, const std::stop_token& stop);

/// False if `catalogue` cannot describe the objects seen: one is missing, new,
/// or has another size or, if both ETags are of one kind, another version.
///
/// REQUIRES: `seen` is without the objects that a catalogue leaves out.
bool fits(const Catalogue& catalogue, const Glimpse& seen, bool has_etags);

/// The differences between two catalogues of the same place.
struct CatalogueChange {
  std::uint64_t added = 0;
  std::uint64_t removed = 0;
  std::uint64_t rewritten = 0;  ///< Objects with another size or version.

  bool is_any() const { return added + removed + rewritten != 0; }
};
CatalogueChange change_between(const Catalogue& before, const Catalogue& now);
/// The same for objects that were listed but not indexed yet.
CatalogueChange change_between(const Catalogue& before,
                               const std::vector<ObjectInfo>& now,
                               bool has_etags);

/// "URL: 2 objects were added and 0 removed since the catalogue of 2 h ago;
/// listed again".
std::string describe(const CatalogueChange& change, std::string_view url,
                     std::chrono::sys_seconds listed_at,
                     std::chrono::sys_seconds now);

/// "40 s ago", "12 min ago", "2 h ago", "3 d ago"; "of unknown age" for the
/// epoch.
std::string age_for_people(std::chrono::sys_seconds listed_at,
                           std::chrono::sys_seconds now);

/// Up to this many named objects are asked for one by one; for more, a place is
/// listed, if it can be.
inline constexpr std::size_t kMostAskedFor = 16;

/// Asks the store for each object of a catalogue that has few: false if one has
/// another size or version, or is gone. Blocks.
///
/// REQUIRES: at most kMostAskedFor objects.
/// Errors: as Store::stat
Result<bool> has_true_objects(Store& store, std::string_view prefix,
                              const Catalogue& catalogue,
                              const std::stop_token& stop);

/// Fails if the store does not let this user read a catalogue's objects:
/// requests one byte of the first object that has one. Blocks.
///
/// Errors: as Store::read
Result<void> check_access(Store& store, std::string_view prefix,
                          const Catalogue& catalogue,
                          const std::stop_token& stop);

/// A note beside a catalogue: the state in which it was last found valid.
struct SeenNote {
  std::string seen;       ///< The digest of a Glimpse; one line in any case.
  std::string catalogue;  ///< Its digest.
  /// A hash of its ETags, which the digest leaves out: of those that a look at
  /// the store can see.
  std::string versions;
};
SeenNote note_of(std::string seen, const Catalogue& catalogue);
/// True if the note is of this catalogue, not of one of the same digest whose
/// objects had other versions.
bool is_of(const SeenNote& note, const Catalogue& catalogue);
/// Nullopt if there is none, or it cannot be read.
std::optional<SeenNote> read_seen(const std::string& catalogue_path);
/// If the note cannot be written, the next start compares again.
void write_seen(const std::string& catalogue_path, const SeenNote& note);

/// True if a process on this node has checked the catalogue at this path since
/// this process last asked, or since a few seconds before it began: the ranks
/// of a job trust each other, so that all use one listing.
bool was_checked_for_job(const std::string& catalogue_path);
/// Notes that this process has asked.
void note_asked(const std::string& catalogue_path);

}  // namespace leat
