#include "leat/index/catalogue_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/base/hash.h"
#include "leat/index/build_turn.h"
#include "leat/index/catalogue_file.h"
#include "leat/index/container.h"
#include "leat/index/freshness.h"
#include "leat/index/job_listing.h"
#include "leat/index/selection.h"
#include "leat/index/stat_all.h"
#include "leat/runtime/log.h"

namespace leat {
namespace {

using MaybeOpened = std::optional<OpenedCatalogue>;

/// For each place.
constexpr std::size_t kMostEarlier = 4;

std::chrono::sys_seconds now() {
  return std::chrono::floor<std::chrono::seconds>(
      std::chrono::system_clock::now());
}

/// The catalogues that exist, before anybody asks whether they are still true.
struct Candidates {
  MaybeOpened published;
  MaybeOpened cached;
  /// The store refused to say whether there is one beside the data.
  bool was_refused = false;
};

Result<Candidates> candidates_at(const PublishedPlace& place,
                                 const CatalogueOptions& options,
                                 const std::stop_token& stop) {
  Candidates all;
  LEAT_TRY(all.published,
           find_published(place, options, stop, &all.was_refused));
  if (!all.published || options.refresh.is_automatic()) {
    LEAT_TRY(all.cached,
             find_cached(place.path, place.launch, options.refresh));
  }
  return all;
}

/// A lock beside `path`: its holder asks the store, for all ranks of this node.
std::string turn_path(const std::string& path) { return path + ".turn"; }

/// True if another rank has asked; else the lock is in `sought`, if there are
/// other ranks and it can be had.
Result<bool> has_been_asked(const PublishedPlace& place,
                            const CatalogueOptions& options, Sought& sought,
                            const std::stop_token& stop) {
  if (!place.path || place.launch.rank.world_size < 2) return false;
  TurnTimes times = options.times;
  times.head_start = {};
  auto turn = wait_for_turn(
      turn_path(*place.path), place.launch, times,
      [&]() -> Result<Sight> {
        return was_checked_for_job(*place.path) ? Sight::kThere
                                                : Sight::kNothing;
      },
      stop);
  if (!turn) {
    if (turn.error().code() == ErrorCode::kCancelled) return turn.error();
    return false;  // Nothing can be locked there: each asks for itself.
  }
  if (!*turn) return true;
  sought.turn.emplace(**std::move(turn));
  return false;
}

/// The catalogue that another node of the job has asked the store about;
/// nullopt if this one has to.
Result<MaybeOpened> asked_by_another_node(const PublishedPlace& place,
                                          const std::stop_token& stop) {
  if (place.job == nullptr) return MaybeOpened();
  LEAT_TRY(MaybeOpened others,
           place.job->take(place.store, place.prefix, place.path, stop));
  if (others && place.path) {
    write_seen(*place.path, note_of("another node", *others->catalogue));
    note_asked(*place.path);
  }
  return others;
}

/// An inventory is what its URL and version say, and a listing what was seen.
std::string text_of(const Glimpse& seen) {
  return "listing " + seen.digest().hex();
}

/// True if the note says that this catalogue was true for `seen`.
bool is_vouched_for(const PublishedPlace& place, const Catalogue& catalogue,
                    std::string_view seen) {
  if (!place.path) return false;
  const auto note = read_seen(*place.path);
  return note && note->seen == seen && is_of(*note, catalogue);
}

void vouch_for(const PublishedPlace& place, const Catalogue& catalogue,
               const std::string& seen) {
  if (!place.path) return;
  write_seen(*place.path, note_of(seen, catalogue));
}

/// A user who may not list may read all the same, and that is enough.
Result<bool> is_unlisted_but_good(const PublishedPlace& place,
                                  const OpenedCatalogue& candidate, Error error,
                                  const std::stop_token& stop) {
  if (error.code() != ErrorCode::kPermissionDenied) return error;
  if (candidate.source != CatalogueSource::kPublished &&
      !check_access(place.store, place.prefix, *candidate.catalogue, stop)) {
    return error;
  }
  log_info(fmt::format(
      "{} cannot be listed with these credentials, so nobody can say whether "
      "its catalogue {} is still true",
      place.store.url_of(place.prefix),
      age_for_people(candidate.listed_at, now())));
  return true;
}

bool is_asked_for_by_name(const Selection& selection) {
  const std::vector<std::string> names = selection.names();
  return !names.empty() && names.size() <= kMostAskedFor;
}

/// A look at the objects that are named, and at no others.
Result<Glimpse> glimpse_at_named(const PublishedPlace& place,
                                 std::vector<std::string> names,
                                 const std::stop_token& stop) {
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  Glimpse seen;
  seen.is_all = true;
  auto found = stat_all(
      place.store, place.prefix, names,
      [&](std::size_t name) {
        return fmt::format("looking for '{}'", names[name]);
      },
      {}, stop);
  if (!found) {
    // One that is gone is reported when the catalogue is made anew.
    if (found.error().code() == ErrorCode::kNotFound) return seen;
    return std::move(found).error();
  }
  seen.first = *std::move(found);
  for (std::size_t i = 0; i < names.size(); ++i) seen.first[i].key = names[i];
  return seen;
}

Result<Glimpse> look_at(const PublishedPlace& place, const Catalogue& kept,
                        const Selection& selection,
                        const std::stop_token& stop) {
  if (is_asked_for_by_name(selection)) {
    return glimpse_at_named(place, selection.names(), stop);
  }
  return glimpse_at(place.store, place.prefix, kept, stop);
}

/// If the glimpse is a whole listing, the objects that would be taken from it.
/// Otherwise all that were seen, since a part does not tell which data is usual
/// there. Without the files that lie beside the shards of `kept`.
Glimpse taken_of(Glimpse seen, const Catalogue& kept,
                 const CatalogueOptions& options) {
  if (seen.is_all) {
    Result<Selected> taken =
        select_objects(std::move(seen.first), options.index.selection);
    seen.first = taken ? std::move(taken->objects) : std::vector<ObjectInfo>();
  }
  if (!options.make && kept.layout() == Layout::kShards) {
    const auto is_beside = [](const ObjectInfo& object) {
      return !is_shard(object.key);
    };
    std::erase_if(seen.first, is_beside);
    std::erase_if(seen.tail, is_beside);
  }
  return seen;
}

/// Asks the store whether `candidate` is still true.
Result<bool> is_true(const PublishedPlace& place,
                     const OpenedCatalogue& candidate,
                     const CatalogueOptions& options, std::string& seen,
                     const std::stop_token& stop) {
  const Selection& selection = options.index.selection;
  Result<Glimpse> glimpse =
      look_at(place, *candidate.catalogue, selection, stop);
  if (!glimpse) {
    return is_unlisted_but_good(place, candidate, std::move(glimpse).error(),
                                stop);
  }
  // Objects that a catalogue leaves out may come and go.
  glimpse->first = select_some(std::move(glimpse->first), selection);
  glimpse->tail = select_some(std::move(glimpse->tail), selection);
  seen = text_of(*glimpse);
  if (!is_vouched_for(place, *candidate.catalogue, seen) &&
      !fits(*candidate.catalogue,
            taken_of(*std::move(glimpse), *candidate.catalogue, options),
            etags_apply(*candidate.catalogue, place.store))) {
    return false;
  }
  vouch_for(place, *candidate.catalogue, seen);
  return true;
}

/// The SeenNote's text for a catalogue of an inventory; empty without one, or
/// if nobody knows its version.
std::string text_of_inventory(const IndexOptions& options) {
  if (!options.objects || options.objects_version.empty()) return "";
  return "inventory " + options.objects_version;
}

/// True if the catalogue was not made from this version of this inventory, or
/// the store was asked about it since.
bool is_of_another_inventory(const PublishedPlace& place,
                             const std::string& seen) {
  if (seen.empty()) return false;
  const auto note = place.path ? read_seen(*place.path) : std::nullopt;
  return !note || note->seen != seen;
}

/// The one that another rank of this node has found good, or made.
MaybeOpened chosen_by_others(const PublishedPlace& place, Candidates& all) {
  const auto note = read_seen(*place.path);
  if (!note) return std::nullopt;
  for (MaybeOpened* candidate : {&all.published, &all.cached}) {
    if (*candidate && is_of(*note, *(*candidate)->catalogue)) {
      return std::move(*candidate);
    }
  }
  return std::nullopt;
}

Result<void> choose_checked(const PublishedPlace& place, Candidates all,
                            const CatalogueOptions& options, Sought& sought,
                            const std::stop_token& stop) {
  for (MaybeOpened* candidate : {&all.published, &all.cached}) {
    if (!*candidate) continue;
    LEAT_TRY(const bool is_still_true,
             is_true(place, **candidate, options, sought.seen, stop));
    if (is_still_true) {
      sought.good = std::move(*candidate);
      sought.outdated.reset();
      return {};
    }
    if (!sought.outdated ||
        sought.outdated->listed_at < (*candidate)->listed_at) {
      sought.outdated = std::move(*candidate);
    }
  }
  return {};
}

/// Takes what is there as it stands, if the store lets it be read.
Result<void> choose_unchecked(const PublishedPlace& place, Candidates all,
                              Sought& sought, const std::stop_token& stop) {
  if (all.published) {
    sought.good = std::move(all.published);
  } else if (all.cached) {
    if (all.was_refused) {
      LEAT_TRY_VOID(check_access(place.store, place.prefix,
                                 *all.cached->catalogue, stop));
    }
    sought.good = std::move(all.cached);
  }
  return {};
}

/// Those that have the name of `path`, then `mark`, then anything.
std::vector<std::filesystem::path> files_beside(const std::string& path,
                                                std::string_view mark) {
  const std::string begin =
      std::filesystem::path(path).filename().string().append(mark);
  std::vector<std::filesystem::path> found;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(path).parent_path(), none)) {
    if (entry.path().filename().string().starts_with(begin)) {
      found.push_back(entry.path());
    }
  }
  return found;
}

std::string earlier_path(const std::string& path, std::string_view digest) {
  return fmt::format("{}.of-{}", path, digest);
}

constexpr std::string_view kLinkMark = ".link-";
/// A link is needed for moments; clocks of machines differ by less than this.
constexpr std::chrono::minutes kMostLinked{10};

/// A name beside `path` that no other process or thread uses, of any machine,
/// with the time: a link has the times of its file.
std::string link_path(const std::string& path) {
  std::random_device draw;
  return fmt::format("{}{}{}-{:08x}{:08x}", path, kLinkMark,
                     now().time_since_epoch().count(), draw(), draw());
}

/// Those of processes that were killed before they removed them.
void remove_lost_links(const std::string& path) {
  const std::size_t begin =
      std::filesystem::path(path).filename().string().size() + kLinkMark.size();
  for (const std::filesystem::path& file : files_beside(path, kLinkMark)) {
    const std::string name = file.filename().string();
    std::uint32_t made_at = 0;  // So old is a name without a time.
    (void)std::from_chars(name.data() + begin, name.data() + name.size(),
                          made_at);
    const std::chrono::sys_seconds made{std::chrono::seconds(made_at)};
    std::error_code ignored;
    if (now() - made > kMostLinked) std::filesystem::remove(file, ignored);
  }
}

/// False if the file was replaced since this catalogue was read from it.
bool still_holds(const std::string& file, const Catalogue& catalogue) {
  const auto held = map_catalogue(file, {.most_checked_bytes = 0});
  return held && is_of(note_of("", catalogue), *held);
}

}  // namespace

Result<std::optional<OpenedCatalogue>> find_cached(
    const std::optional<std::string>& path, const Launch& launch,
    const Refresh& refresh) {
  if (!path || !catalogue_identity(*path) ||
      !refresh.accepts(written_at(*path), now())) {
    return MaybeOpened();
  }
  Result<Catalogue> catalogue = map_catalogue(*path, map_options_of(launch));
  if (catalogue) {
    return MaybeOpened(
        {.catalogue = std::make_shared<const Catalogue>(*std::move(catalogue)),
         .source = CatalogueSource::kCache,
         .location = *path,
         .note = "",
         .listed_at = written_at(*path),
         .file = *path});
  }
  if (catalogue.error().code() == ErrorCode::kCorrupt) {
    return std::move(catalogue).error();
  }
  if (catalogue.error().code() == ErrorCode::kPermissionDenied) {
    log_warning("a kept catalogue is not used: " + catalogue.error().message());
  }
  // The file is missing, unreadable, or has another version.
  return MaybeOpened();
}

Result<Sought> seek_catalogue(const PublishedPlace& place,
                              const CatalogueOptions& options,
                              const std::stop_token& stop) {
  Sought sought;
  const bool is_checked = options.refresh.is_automatic() &&
                          (place.store.traits().can_list ||
                           is_asked_for_by_name(options.index.selection));
  bool is_asked = false;
  if (is_checked && !options.index.objects) {
    LEAT_TRY(is_asked, has_been_asked(place, options, sought, stop));
  }
  if (place.path) sought.before = catalogue_identity(*place.path);
  sought.seen = text_of_inventory(options.index);
  if (options.refresh.is_always()) return sought;
  if (is_checked && !options.index.objects && !is_asked) {
    LEAT_TRY(sought.good, asked_by_another_node(place, stop));
    if (sought.good) return sought;
  }
  LEAT_TRY(Candidates all, candidates_at(place, options, stop));
  if (is_asked) {
    sought.good = chosen_by_others(place, all);
    note_asked(*place.path);
    if (sought.good) return sought;
  }
  if (!options.index.objects && is_checked) {
    LEAT_TRY_VOID(choose_checked(place, std::move(all), options, sought, stop));
    if (place.path) note_asked(*place.path);
    return sought;
  }
  // A published one wins over an inventory, whatever the cache has.
  if (options.refresh.is_automatic() && !all.published && all.cached &&
      is_of_another_inventory(place, sought.seen)) {
    sought.outdated = std::move(all.cached);
    return sought;
  }
  LEAT_TRY_VOID(choose_unchecked(place, std::move(all), sought, stop));
  return sought;
}

void keep_earlier(const std::optional<std::string>& path,
                  const OpenedCatalogue& outdated) {
  if (!path || outdated.file.empty()) return;
  std::error_code ignored;  // Without it, a resumed epoch is refused.
  remove_lost_links(*path);
  const std::string link = link_path(*path);
  std::filesystem::create_hard_link(outdated.file, link, ignored);
  if (still_holds(link, *outdated.catalogue)) {
    // One of the same digest may be there, whose objects had other versions.
    std::filesystem::rename(
        link, earlier_path(*path, outdated.catalogue->digest().hex()), ignored);
  }
  // If both names are of one file already, the system renames nothing.
  std::filesystem::remove(link, ignored);
  auto kept = files_beside(*path, ".of-");
  std::ranges::sort(kept, {}, [&](const std::filesystem::path& file) {
    return std::filesystem::last_write_time(file, ignored);
  });
  for (std::size_t i = 0; i + kMostEarlier < kept.size(); ++i) {
    std::filesystem::remove(kept[i], ignored);
  }
}

std::optional<OpenedCatalogue> find_earlier(
    const std::optional<std::string>& path, std::string_view digest) {
  if (!path ||
      digest.find_first_not_of("0123456789abcdef") != std::string_view::npos) {
    return std::nullopt;
  }
  const Result<MaybeOpened> found =
      find_cached(earlier_path(*path, digest), Launch{}, Refresh::never());
  if (!found || !*found || (*found)->catalogue->digest().hex() != digest) {
    return std::nullopt;
  }
  return **found;
}

}  // namespace leat
