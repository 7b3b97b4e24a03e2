#include "leat/index/open_catalogue.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "leat/base/errors.h"
#include "leat/index/build_turn.h"
#include "leat/index/catalogue_file.h"
#include "leat/index/catalogue_lock.h"
#include "leat/index/catalogue_search.h"
#include "leat/index/freshness.h"
#include "leat/index/job_listing.h"
#include "leat/index/label_changes.h"
#include "leat/index/published.h"
#include "leat/runtime/launcher.h"

namespace leat {
namespace {

using MaybeOpened = std::optional<OpenedCatalogue>;

Result<std::shared_ptr<const Catalogue>> open_bytes(Buffer bytes) {
  LEAT_TRY(Catalogue catalogue, Catalogue::open(std::move(bytes)));
  return std::make_shared<const Catalogue>(std::move(catalogue));
}

/// If the launcher's variables are wrong, the loader will say so.
Launch launch_of(const Env& env) {
  const Result<Launch> launch = read_launch(env);
  return launch ? *launch : Launch{};
}

std::chrono::sys_seconds now() {
  return std::chrono::floor<std::chrono::seconds>(
      std::chrono::system_clock::now());
}

void add_note(std::string& notes, std::string_view note) {
  if (!notes.empty()) notes += "; ";
  notes += note;
}

/// On a file system ETags say when a file was written, and a copy of the folder
/// would seem changed.
IndexOptions for_publication(const Store& store, const IndexOptions& options) {
  IndexOptions adjusted = options;
  if (etag_kind_of(store) == EtagKind::kFile) {
    adjusted.etags = EtagUse::kLeaveOut;
  }
  return adjusted;
}

/// Writes what was made to `path`.
OpenedCatalogue keep(const BuiltCatalogue& built,
                     const std::optional<std::string>& path) {
  OpenedCatalogue opened;
  opened.note = built.note;
  opened.listed_at = now();
  if (!path) {
    add_note(opened.note,
             "the catalogue is not kept: set LEAT_CACHE_DIR to a folder for "
             "it");
  } else if (auto kept = write_catalogue(*path, built.bytes.span()); kept) {
    opened.location = opened.file = *path;
  } else {
    add_note(opened.note,
             fmt::format("the catalogue is not kept, and will be made again "
                         "next time: {}; set LEAT_CACHE_DIR to a folder that "
                         "can be written",
                         kept.error().message()));
  }
  return opened;
}

/// The same, and opens it: the file if there is one, whose pages the system may
/// drop, unlike bytes in memory.
Result<OpenedCatalogue> keep_and_map(BuiltCatalogue built,
                                     const std::optional<std::string>& path,
                                     const Launch& launch) {
  OpenedCatalogue opened = keep(built, path);
  if (!opened.file.empty()) {
    Result<Catalogue> mapped =
        map_catalogue(opened.file, map_options_of(launch));
    if (mapped) {
      opened.catalogue = std::make_shared<const Catalogue>(*std::move(mapped));
      return opened;
    }
  }
  LEAT_TRY(opened.catalogue, open_bytes(std::move(built.bytes)));
  return opened;
}

/// Makes a catalogue, and keeps it.
Result<OpenedCatalogue> build_and_keep(const PublishedPlace& place,
                                       const CatalogueOptions& options,
                                       const std::stop_token& stop) {
  if (place.job != nullptr) {
    LEAT_TRY(MaybeOpened others,
             place.job->take(place.store, place.prefix, place.path, stop));
    if (others) return *std::move(others);
  }
  LEAT_TRY(BuiltCatalogue built,
           options.make ? options.make()
                        : build_catalogue(place.store, place.prefix,
                                          options.index, stop));
  OpenedCatalogue opened = keep(built, place.path);
  LEAT_TRY(opened.catalogue, open_bytes(std::move(built.bytes)));
  return opened;
}

OpenedCatalogue kept_as(std::string_view identity, OpenedCatalogue opened) {
  opened.kept_as = identity;
  return opened;
}

/// Makes the catalogue, or waits for the process on this node that makes it.
Result<OpenedCatalogue> build_once(const PublishedPlace& place,
                                   const CatalogueOptions& options,
                                   const Sought& sought,
                                   const std::stop_token& stop) {
  if (!place.path) return build_and_keep(place, options, stop);
  const auto look = [&]() -> Result<Sight> {
    const auto now = catalogue_identity(*place.path);
    return now && now != sought.before ? Sight::kThere : Sight::kNothing;
  };
  const auto turn =
      wait_for_turn(*place.path, place.launch, options.times, look, stop);
  if (!turn && turn.error().code() == ErrorCode::kCancelled) {
    return turn.error();
  }
  if (turn && !*turn) {
    LEAT_TRY(MaybeOpened cached,
             find_cached(place.path, place.launch, Refresh::never()));
    if (cached) return *std::move(cached);
  }
  // If nothing can be locked, each process makes its own.
  return build_and_keep(place, options, stop);
}

/// The process that has made it logs the changes: of objects if the store was
/// asked for them, and of labels in any case.
void note_change(std::string_view url, const Sought& sought,
                 const OpenedCatalogue& before, OpenedCatalogue& made) {
  if (made.source != CatalogueSource::kBuilt) return;
  const std::string labels =
      label_changes(before.catalogue->classes(), made.catalogue->classes());
  CatalogueChange change;
  if (sought.outdated) {
    change = change_between(*before.catalogue, *made.catalogue);
  }
  if (change.is_any()) {
    add_note(made.note, describe(change, url, before.listed_at, now()));
    if (!labels.empty()) add_note(made.note, labels);
  } else if (!labels.empty()) {
    add_note(made.note, fmt::format("{}: {}", url, labels));
  }
}

/// A user who wanted checksums is told that samples go unchecked from now on.
void note_lost_checksums(std::string_view url, const OpenedCatalogue& before,
                         OpenedCatalogue& made) {
  if (made.source != CatalogueSource::kBuilt ||
      !before.catalogue->has_checksums() || made.catalogue->has_checksums()) {
    return;
  }
  add_note(made.note,
           fmt::format("{}: the catalogue that was listed now has no checksums "
                       "of samples, and the former one had; `leat index {} "
                       "--checksums` makes them again",
                       url, url));
}

/// The catalogue that one made now takes the place of, whether or not the store
/// was asked about it.
MaybeOpened former_catalogue(const Sought& sought,
                             const std::optional<std::string>& path,
                             const Launch& launch) {
  if (sought.outdated) return sought.outdated;
  Result<MaybeOpened> cached = find_cached(path, launch, Refresh::never());
  return cached ? *std::move(cached) : std::nullopt;
}

/// The cache keeps one catalogue for each list of classes.
std::string cache_identity(std::string_view identity,
                           const std::vector<std::string>& classes) {
  std::string all(identity);
  for (const std::string& name : classes) {
    all.append(fmt::format("\n{} {}", name.size(), name));
  }
  return all;
}

Error cannot_list(const Store& store, std::string_view prefix) {
  return not_found(
      "{} is not there, or too old, and {} cannot be listed: make a catalogue "
      "with `leat index --publish` where the data can be listed (as a folder "
      "or over s3://)",
      store.url_of(published_key(prefix)), store.url_of(prefix));
}

}  // namespace

std::string_view to_string(CatalogueSource source) {
  switch (source) {
    case CatalogueSource::kPublished:
      return "published";
    case CatalogueSource::kCache:
      return "cache";
    case CatalogueSource::kBuilt:
      return "built";
  }
  return "";
}

std::string published_key(std::string_view prefix) {
  return key_in_store(prefix, ".leat/catalogue");
}

Result<OpenedCatalogue> open_or_build(Store& store, std::string_view prefix,
                                      std::string_view identity,
                                      const CatalogueOptions& options,
                                      const Env& env,
                                      const std::stop_token& stop) {
  const auto path = kept_catalogue_path(identity, options.index.classes, env);
  const Launch launch = launch_of(env);
  JobListing job(options.job.get(), store,
                 cache_identity(identity, options.index.classes));
  const PublishedPlace place{.store = store,
                             .prefix = prefix,
                             .path = path,
                             .launch = launch,
                             .job = &job};
  LEAT_TRY(Sought sought, seek_catalogue(place, options, stop));
  if (sought.good) {
    job.give(*sought.good);
    return kept_as(identity, *std::move(sought.good));
  }
  if (!store.traits().can_list && !options.index.objects &&
      options.index.selection.is_usual()) {
    return cannot_list(store, prefix);
  }
  const MaybeOpened former = former_catalogue(sought, path, launch);
  if (former) keep_earlier(path, *former);
  LEAT_TRY(OpenedCatalogue made, build_once(place, options, sought, stop));
  job.give(made);
  if (path) {
    // Without a look before it the note tells other ranks alone.
    write_seen(*path, note_of(sought.seen.empty() ? "made" : sought.seen,
                              *made.catalogue));
    note_asked(*path);
  }
  if (former) {
    note_change(store.url_of(prefix), sought, *former, made);
    note_lost_checksums(store.url_of(prefix), *former, made);
  }
  return kept_as(identity, std::move(made));
}

Result<FoundCatalogue> find_catalogue(Store& store, std::string_view prefix,
                                      std::string_view identity,
                                      const CatalogueOptions& options,
                                      const Env& env,
                                      const std::stop_token& stop) {
  const PublishedPlace place{
      .store = store,
      .prefix = prefix,
      .path = kept_catalogue_path(identity, options.index.classes, env),
      .launch = launch_of(env)};
  LEAT_TRY(Sought sought, seek_catalogue(place, options, stop));
  if (sought.outdated) keep_earlier(place.path, *sought.outdated);
  if (sought.good) {
    sought.good = kept_as(identity, *std::move(sought.good));
  }
  return FoundCatalogue{.good = std::move(sought.good),
                        .outdated = std::move(sought.outdated)};
}

Result<OpenedCatalogue> keep_catalogue(BuiltCatalogue built,
                                       std::string_view identity,
                                       const std::vector<std::string>& classes,
                                       const Env& env) {
  return keep_and_map(std::move(built),
                      kept_catalogue_path(identity, classes, env),
                      launch_of(env));
}

Result<std::optional<OpenedCatalogue>> kept_catalogue(
    std::string_view identity, const std::vector<std::string>& classes,
    const Env& env) {
  LEAT_TRY(MaybeOpened kept,
           find_cached(kept_catalogue_path(identity, classes, env),
                       launch_of(env), Refresh::never()));
  if (kept) kept = kept_as(identity, *std::move(kept));
  return kept;
}

std::optional<OpenedCatalogue> earlier_catalogue(
    std::string_view identity, const std::vector<std::string>& classes,
    std::string_view digest, const Env& env) {
  return find_earlier(kept_catalogue_path(identity, classes, env), digest);
}

std::optional<std::string> kept_catalogue_path(
    std::string_view identity, const std::vector<std::string>& classes,
    const Env& env) {
  return catalogue_cache_path(cache_identity(identity, classes), env);
}

Result<OpenedCatalogue> open_or_make(std::string_view identity,
                                     const CatalogueOptions& options,
                                     const MakeCatalogue& make, const Env& env,
                                     const std::stop_token& stop) {
  const auto path = catalogue_cache_path(identity, env);
  const Launch launch = launch_of(env);
  if (!options.refresh.is_always()) {
    LEAT_TRY(MaybeOpened cached, find_cached(path, launch, options.refresh));
    if (cached) return *std::move(cached);
  }
  const auto make_it = [&]() -> Result<OpenedCatalogue> {
    LEAT_TRY(BuiltCatalogue built, make());
    return keep_and_map(std::move(built), path, launch);
  };
  if (!path) return make_it();
  const auto before = catalogue_identity(*path);
  const auto look = [&]() -> Result<Sight> {
    const auto now = catalogue_identity(*path);
    return now && now != before ? Sight::kThere : Sight::kNothing;
  };
  const auto turn = wait_for_turn(*path, launch, options.times, look, stop);
  if (!turn && turn.error().code() == ErrorCode::kCancelled) {
    return turn.error();
  }
  if (turn && !*turn) {
    LEAT_TRY(MaybeOpened cached, find_cached(path, launch, Refresh::never()));
    if (cached) return *std::move(cached);
  }
  return make_it();
}

Result<OpenedCatalogue> publish_catalogue(Store& store, std::string_view prefix,
                                          const IndexOptions& options,
                                          std::stop_token stop) {
  const std::string key = published_key(prefix);
  LEAT_TRY(
      BuiltCatalogue built,
      build_catalogue(store, prefix, for_publication(store, options), stop));
  if (auto put = store.write(key, built.bytes.span(), std::move(stop)); !put) {
    return std::move(put).error().while_doing(
        fmt::format("publishing {}", store.url_of(key)));
  }
  OpenedCatalogue opened;
  opened.note = std::move(built.note);
  LEAT_TRY(opened.catalogue, open_bytes(std::move(built.bytes)));
  opened.source = CatalogueSource::kPublished;
  opened.location = store.url_of(key);
  opened.listed_at = now();
  return opened;
}

}  // namespace leat
