#include "leat/index/published.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <utility>

#include "leat/base/errors.h"
#include "leat/base/hash.h"
#include "leat/base/units.h"
#include "leat/index/catalogue_file.h"
#include "leat/runtime/limits.h"

namespace leat {
namespace {

constexpr std::uint64_t kSmallBytes = 16 * kMiB;

/// The store's entry for the catalogue beside the data; nullopt if there is
/// none.
Result<std::optional<ObjectInfo>> stat_published(Store& store,
                                                 const std::string& key,
                                                 const std::stop_token& stop,
                                                 bool* was_refused) {
  Result<ObjectInfo> info = store.stat(key, stop);
  if (info) return std::optional(*std::move(info));
  // A bucket that may not be listed answers 403 for a missing object.
  const ErrorCode code = info.error().code();
  if (code == ErrorCode::kNotFound ||
      (code == ErrorCode::kPermissionDenied && store.traits().can_list)) {
    if (was_refused != nullptr) {
      *was_refused = code == ErrorCode::kPermissionDenied;
    }
    return std::optional<ObjectInfo>();
  }
  return std::move(info).error().while_doing("looking for a catalogue");
}

/// The prefix of the paths of all versions' copies.
std::string copies_of(const std::string& path) {
  return std::filesystem::path(path).replace_extension().string() + "-";
}

/// The path of this version's copy; nullopt if versions cannot be told apart.
std::optional<std::string> copy_path(const PublishedPlace& place,
                                     std::string_view etag) {
  if (!place.path || etag.empty()) return std::nullopt;
  return copies_of(*place.path) + xxh3_128(as_bytes(etag)).hex() + ".leatcat";
}

/// Other versions are of no use any more; a process that has one mapped keeps
/// it.
void remove_other_copies(const PublishedPlace& place, const std::string& kept) {
  const std::string begin = copies_of(*place.path);
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(kept).parent_path(), ignored)) {
    const std::string path = entry.path().string();
    if (path.starts_with(begin) && path != kept) {
      std::filesystem::remove(path, ignored);
    }
  }
}

/// The object's first bytes; an empty one has none to ask for.
Result<void> read_start(Store& store, const ObjectInfo& info,
                        std::span<std::byte> into,
                        const std::stop_token& stop) {
  if (into.empty()) return {};
  ReadRequest request;
  request.object = {.key = info.key, .etag = info.etag};
  request.into = into;
  return read_range(store, std::move(request), stop);
}

/// The store and the first bytes must agree about the length, and it must fit:
/// nobody who writes an object may take the memory of every job.
Result<void> check_size(Store& store, const ObjectInfo& info,
                        const std::stop_token& stop) {
  // Little memory is at stake, and a simple web server serves no ranges.
  if (info.size_bytes <= kSmallBytes) return {};
  Buffer start(Catalogue::kHeaderBytes);
  LEAT_TRY_VOID(read_start(store, info, start.span(), stop));
  LEAT_TRY(const std::uint64_t bytes, Catalogue::length_of(start.span()));
  if (bytes != info.size_bytes) {
    return corrupt("it should have {}, and the store says {}",
                   format_bytes(bytes), format_bytes(info.size_bytes));
  }
  const std::uint64_t most = effective_limits().memory_bytes / 2;
  if (bytes <= most) return {};
  return exhausted(
      "{} has {}, more than half of the memory that this process may have: "
      "give it {}, or remove that object if it is none of yours",
      store.url_of(info.key), format_bytes(bytes), format_bytes(2 * bytes));
}

Result<Buffer> fetch(Store& store, const ObjectInfo& info,
                     const std::stop_token& stop) {
  const auto read = [&]() -> Result<Buffer> {
    LEAT_TRY_VOID(check_size(store, info, stop));
    Buffer bytes(info.size_bytes);
    LEAT_TRY_VOID(read_start(store, info, bytes.span(), stop));
    return bytes;
  };
  Result<Buffer> bytes = read();
  if (!bytes) {
    return std::move(bytes).error().while_doing("reading a catalogue");
  }
  return bytes;
}

/// Nullopt if there is none yet, or if it is of no use.
std::optional<Catalogue> open_copy(const std::string& path,
                                   const Launch& launch) {
  if (!catalogue_identity(path)) return std::nullopt;
  Result<Catalogue> catalogue = map_catalogue(path, map_options_of(launch));
  if (!catalogue) return std::nullopt;
  return *std::move(catalogue);
}

/// The copy of this version, fetched by one process of the node; nullopt where
/// none can be kept.
Result<std::optional<Catalogue>> local_copy(const PublishedPlace& place,
                                            const ObjectInfo& info,
                                            const std::stop_token& stop) {
  const auto path = copy_path(place, info.etag);
  if (!path) return std::optional<Catalogue>();
  if (auto copy = open_copy(*path, place.launch)) return copy;
  const auto look = [&]() -> Result<Sight> {
    return catalogue_identity(*path) ? Sight::kThere : Sight::kNothing;
  };
  const auto turn = wait_for_turn(*path, place.launch, {}, look, stop);
  if (!turn && turn.error().code() == ErrorCode::kCancelled) {
    return turn.error();
  }
  if (!turn) return std::optional<Catalogue>();
  if (*turn) {
    LEAT_TRY(const Buffer bytes, fetch(place.store, info, stop));
    LEAT_TRY_VOID(Catalogue::open(bytes.span(), nullptr));
    if (!write_catalogue(*path, bytes.span())) {
      return std::optional<Catalogue>();
    }
    remove_other_copies(place, *path);
  }
  return open_copy(*path, place.launch);
}

Result<Catalogue> open_published(const PublishedPlace& place,
                                 const ObjectInfo& info,
                                 const std::stop_token& stop) {
  LEAT_TRY(std::optional<Catalogue> copy, local_copy(place, info, stop));
  if (copy) return *std::move(copy);
  LEAT_TRY(Buffer bytes, fetch(place.store, info, stop));
  auto held = std::make_shared<const Buffer>(std::move(bytes));
  const auto span = held->span();
  return Catalogue::open(span, std::move(held));
}

}  // namespace

Result<std::optional<OpenedCatalogue>> find_published(
    const PublishedPlace& place, const CatalogueOptions& options,
    const std::stop_token& stop, bool* was_refused) {
  // It is of all that is there.
  if (!options.index.selection.is_usual()) {
    if (was_refused != nullptr) *was_refused = true;
    return std::optional<OpenedCatalogue>();
  }
  const std::string key =
      place.key.empty() ? published_key(place.prefix) : place.key;
  LEAT_TRY(const std::optional<ObjectInfo> info,
           stat_published(place.store, key, stop, was_refused));
  const auto now = std::chrono::floor<std::chrono::seconds>(
      std::chrono::system_clock::now());
  if (!info || !options.refresh.accepts(info->modified_at, now)) {
    return std::optional<OpenedCatalogue>();
  }
  const std::string url = place.store.url_of(key);
  Result<Catalogue> catalogue = open_published(place, *info, stop);
  if (!catalogue) {
    const ErrorCode code = catalogue.error().code();
    if (code != ErrorCode::kCorrupt && code != ErrorCode::kInvalidArgument) {
      return std::move(catalogue).error();
    }
    return Error(code, fmt::format("{}: {}: publish it again with `leat index "
                                   "--publish`",
                                   url, catalogue.error().message()));
  }
  if (!options.index.classes.empty() &&
      catalogue->classes() != options.index.classes) {
    return std::optional<OpenedCatalogue>();
  }
  return std::optional<OpenedCatalogue>(
      {.catalogue = std::make_shared<const Catalogue>(*std::move(catalogue)),
       .source = CatalogueSource::kPublished,
       .location = url,
       .note = "",
       .listed_at = info->modified_at,
       .file = copy_path(place, info->etag).value_or("")});
}

}  // namespace leat
