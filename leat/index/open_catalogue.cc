#include "leat/index/open_catalogue.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "leat/index/catalogue_file.h"

namespace leat {
namespace {

/// More than any catalogue has.
constexpr std::uint64_t kMostCatalogueBytes = std::uint64_t{64} << 30;

using MaybeOpened = std::optional<OpenedCatalogue>;

Result<std::shared_ptr<const Catalogue>> open_bytes(Buffer bytes) {
  LEAT_TRY(Catalogue catalogue, Catalogue::open(std::move(bytes)));
  return std::make_shared<const Catalogue>(std::move(catalogue));
}

std::chrono::sys_seconds now() {
  return std::chrono::floor<std::chrono::seconds>(
      std::chrono::system_clock::now());
}

/// True if the catalogue has the labels that were asked for.
bool has_classes(const Catalogue& catalogue, const IndexOptions& options) {
  return options.classes.empty() || catalogue.classes() == options.classes;
}

/// What the store says of the catalogue beside the data; nullopt if there is
/// none.
Result<std::optional<ObjectInfo>> stat_published(Store& store,
                                                 const std::string& key,
                                                 const std::stop_token& stop) {
  Result<ObjectInfo> info = store.stat(key, stop);
  if (info) return std::optional(*std::move(info));
  // A bucket that may not be listed answers 403 for what is not there.
  const ErrorCode code = info.error().code();
  if (code == ErrorCode::kNotFound ||
      (code == ErrorCode::kPermissionDenied && store.traits().can_list)) {
    return std::optional<ObjectInfo>();
  }
  return std::move(info).error().while_doing("looking for a catalogue");
}

Result<MaybeOpened> find_published(Store& store, std::string_view prefix,
                                   const CatalogueOptions& options,
                                   std::stop_token stop) {
  const std::string key = published_key(prefix);
  const std::string url = store.url_of(key);
  LEAT_TRY(const std::optional<ObjectInfo> info,
           stat_published(store, key, stop));
  if (!info || !options.refresh.accepts(info->modified_at, now())) {
    return MaybeOpened();
  }
  Result<Buffer> bytes =
      read_object(store, key, kMostCatalogueBytes, std::move(stop));
  if (!bytes) {
    return std::move(bytes).error().while_doing("reading a catalogue");
  }
  auto catalogue = open_bytes(*std::move(bytes));
  if (!catalogue) {
    return Error(catalogue.error().code(),
                 fmt::format("{}: {}: publish it again with `leat index "
                             "--publish`",
                             url, catalogue.error().message()));
  }
  if (!has_classes(**catalogue, options.index)) return MaybeOpened();
  return MaybeOpened({.catalogue = *std::move(catalogue),
                      .source = CatalogueSource::kPublished,
                      .location = url,
                      .note = ""});
}

Result<MaybeOpened> find_cached(const std::optional<std::string>& path,
                                const Refresh& refresh) {
  if (!path || !refresh.accepts(written_at(*path), now())) {
    return MaybeOpened();
  }
  Result<Catalogue> catalogue = map_catalogue(*path);
  if (catalogue) {
    return MaybeOpened(
        {.catalogue = std::make_shared<const Catalogue>(*std::move(catalogue)),
         .source = CatalogueSource::kCache,
         .location = *path,
         .note = ""});
  }
  if (catalogue.error().code() == ErrorCode::kCorrupt) {
    return std::move(catalogue).error();
  }
  return MaybeOpened();  // Not there, not readable, of another version.
}

void add_note(std::string& notes, std::string_view note) {
  if (!notes.empty()) notes += "; ";
  notes += note;
}

Result<OpenedCatalogue> make_and_keep(const std::optional<std::string>& path,
                                      const MakeCatalogue& make) {
  LEAT_TRY(BuiltCatalogue built, make());
  OpenedCatalogue opened;
  opened.note = std::move(built.note);
  if (!path) {
    add_note(opened.note,
             "the catalogue is not kept: set LEAT_CACHE_DIR to a folder for "
             "it");
  } else if (auto kept = write_catalogue(*path, built.bytes.span()); kept) {
    opened.location = *path;
  } else {
    add_note(opened.note,
             fmt::format("the catalogue is not kept, and will be made again "
                         "next time: {}; set LEAT_CACHE_DIR to a folder that "
                         "can be written",
                         kept.error().message()));
  }
  LEAT_TRY(opened.catalogue, open_bytes(std::move(built.bytes)));
  return opened;
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
  return Error(
      ErrorCode::kNotFound,
      fmt::format("{} is not there, or too old, and {} cannot be listed: make "
                  "a catalogue "
                  "with `leat index --publish` where the data can be listed "
                  "(as a folder or over s3://)",
                  store.url_of(published_key(prefix)), store.url_of(prefix)));
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
                                      const Env& env, std::stop_token stop) {
  const auto path = catalogue_cache_path(
      cache_identity(identity, options.index.classes), env);
  if (!options.refresh.is_always()) {
    LEAT_TRY(MaybeOpened published,
             find_published(store, prefix, options, stop));
    if (published) return *std::move(published);
    LEAT_TRY(MaybeOpened cached, find_cached(path, options.refresh));
    if (cached) return *std::move(cached);
  }
  if (!store.traits().can_list) return cannot_list(store, prefix);
  return make_and_keep(path, [&] {
    return build_catalogue(store, prefix, options.index, std::move(stop));
  });
}

Result<OpenedCatalogue> open_or_make(std::string_view identity, Refresh refresh,
                                     const MakeCatalogue& make,
                                     const Env& env) {
  const auto path = catalogue_cache_path(identity, env);
  if (!refresh.is_always()) {
    LEAT_TRY(MaybeOpened cached, find_cached(path, refresh));
    if (cached) return *std::move(cached);
  }
  return make_and_keep(path, make);
}

Result<OpenedCatalogue> publish_catalogue(Store& store, std::string_view prefix,
                                          const IndexOptions& options,
                                          std::stop_token stop) {
  const std::string key = published_key(prefix);
  IndexOptions adjusted = options;
  if (etag_kind_of(store) == EtagKind::kFile) {
    adjusted.etags = EtagUse::kLeaveOut;
  }
  LEAT_TRY(BuiltCatalogue built,
           build_catalogue(store, prefix, adjusted, stop));
  if (auto put = store.write(key, built.bytes.span(), std::move(stop)); !put) {
    return std::move(put).error().while_doing(
        fmt::format("publishing {}", store.url_of(key)));
  }
  OpenedCatalogue opened;
  opened.note = std::move(built.note);
  LEAT_TRY(opened.catalogue, open_bytes(std::move(built.bytes)));
  opened.source = CatalogueSource::kPublished;
  opened.location = store.url_of(key);
  return opened;
}

}  // namespace leat
