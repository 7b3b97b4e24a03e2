#include "leat/index/freshness.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/check.h"
#include "leat/base/mutex.h"
#include "leat/index/build.h"
#include "leat/index/catalogue_file.h"
#include "leat/index/folder_layout.h"
#include "leat/index/stat_all.h"

namespace leat {
namespace {

/// A listing of up to this many pages is read to its end.
constexpr std::size_t kMostPages = 5;
/// The number of keys in a page of a bucket's listing.
constexpr std::uint64_t kKeysAPage = 1000;
/// A note is three hashes in hex, and a word.
constexpr std::size_t kMostNoteBytes = 256;
constexpr std::string_view kNoteBegin = "leat seen 2\n";

/// Ranks that were started together did not all start at once.
constexpr std::chrono::seconds kStartedTogether{5};

using FileTime = std::filesystem::file_time_type;

/// The time when this process began, a forked one too. If it cannot be found,
/// now: then this process looks for itself.
FileTime process_began() {
  const FileTime now = FileTime::clock::now();
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  // The program's name, in brackets, may hold anything.
  std::istringstream words(text.substr(text.rfind(')') + 1));
  constexpr int kWordsBefore = 19;
  std::string word;
  for (int i = 0; i < kWordsBefore; ++i) words >> word;
  std::int64_t ticks = 0;
  timespec since_boot{};
  if (!(words >> ticks) || ::clock_gettime(CLOCK_BOOTTIME, &since_boot) != 0) {
    return now;
  }
  const std::int64_t ticks_a_second = ::sysconf(_SC_CLK_TCK);
  if (ticks_a_second <= 0) return now;
  return now - (std::chrono::seconds(since_boot.tv_sec) -
                std::chrono::milliseconds(1000 * ticks / ticks_a_second));
}

std::string seen_path(const std::string& catalogue_path) {
  return catalogue_path + ".seen";
}

struct Asked {
  Mutex mutex;
  std::map<std::string, FileTime> at LEAT_GUARDED_BY(mutex);
};

Asked& asked() {
  static auto* const all = new Asked;
  return *all;
}

ObjectView object_at(const Catalogue& catalogue, std::uint64_t i) {
  return catalogue.object({static_cast<std::uint32_t>(i)});
}

bool is_same(const ObjectView& kept, const ObjectInfo& seen, bool has_etags) {
  return kept.key == seen.key && kept.size_bytes == seen.size_bytes &&
         (!has_etags || kept.etag.empty() || seen.etag.empty() ||
          kept.etag == seen.etag);
}

/// Whether the catalogue's objects from `begin` are those of `seen`; all of
/// them, if `to_end`.
bool runs_along(const Catalogue& catalogue, std::uint64_t begin,
                const std::vector<ObjectInfo>& seen, bool to_end,
                bool has_etags) {
  std::uint64_t at = begin;
  for (const ObjectInfo& object : seen) {
    if (at >= catalogue.objects() ||
        !is_same(object_at(catalogue, at), object, has_etags)) {
      return false;
    }
    ++at;
  }
  return !to_end || at == catalogue.objects();
}

void take(ListPage page, std::size_t below, std::vector<ObjectInfo>& into) {
  for (ObjectInfo& object : page.objects) {
    object.key.erase(0, below);
    if (!is_hidden(object.key)) into.push_back(std::move(object));
  }
}

void add(Hasher128& hasher, const std::vector<ObjectInfo>& objects) {
  hasher.update(std::uint64_t{objects.size()});
  for (const ObjectInfo& object : objects) {
    hasher.update(std::uint64_t{object.key.size()});
    hasher.update(as_bytes(object.key));
    hasher.update(object.size_bytes);
    hasher.update(std::uint64_t{object.etag.size()});
    hasher.update(as_bytes(object.etag));
  }
}

/// The next line of a note, which is taken off; nullopt without an end.
std::optional<std::string> take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  std::string line(text.substr(0, end));
  text.remove_prefix(end + 1);
  return line;
}

/// A hash of the ETags that a Glimpse compares: all in a small place, the first
/// and the last of a large one, which is not read whole at each start.
Hash128 seen_versions(const Catalogue& catalogue) {
  const std::uint64_t objects = catalogue.objects();
  const std::uint64_t first = std::min(objects, kMostPages * kKeysAPage);
  Hasher128 hasher;
  const auto add_one = [&](std::uint64_t i) {
    const std::string_view etag = object_at(catalogue, i).etag;
    hasher.update(std::uint64_t{etag.size()});
    hasher.update(as_bytes(etag));
  };
  for (std::uint64_t i = 0; i < first; ++i) add_one(i);
  if (first < objects) add_one(objects - 1);
  return hasher.digest();
}

template <class Key, class Same>
CatalogueChange count_change(const Catalogue& before, std::uint64_t objects,
                             const Key& key, const Same& same) {
  CatalogueChange change;
  std::uint64_t i = 0;
  std::uint64_t j = 0;
  while (i < before.objects() || j < objects) {
    if (j == objects ||
        (i < before.objects() && object_at(before, i).key < key(j))) {
      ++change.removed;
      ++i;
    } else if (i == before.objects() || key(j) < object_at(before, i).key) {
      ++change.added;
      ++j;
    } else {
      if (!same(i, j)) ++change.rewritten;
      ++i;
      ++j;
    }
  }
  return change;
}

}  // namespace

Hash128 Glimpse::digest() const {
  Hasher128 hasher;
  add(hasher, first);
  hasher.update(std::uint64_t{is_all});
  add(hasher, tail);
  return hasher.digest();
}

Result<Glimpse> glimpse_at(Store& store, std::string_view prefix,
                           const Catalogue& kept, const std::stop_token& stop) {
  const std::string below = key_in_store(prefix, "");
  const std::uint64_t objects = kept.objects();
  const std::size_t pages =
      objects <= (kMostPages - 1) * kKeysAPage ? kMostPages : 1;
  Glimpse seen;
  ListRequest request{.prefix = below};
  for (std::size_t i = 0; i < pages; ++i) {
    LEAT_TRY(ListPage page, store.list(request, stop));
    request.resume = page.resume;
    take(std::move(page), below.size(), seen.first);
    if (request.resume.empty()) {
      seen.is_all = true;
      return seen;
    }
  }
  if (objects < 2) return seen;
  request.resume.clear();
  request.start_after = below + std::string(object_at(kept, objects - 2).key);
  LEAT_TRY(ListPage page, store.list(request, stop));
  take(std::move(page), below.size(), seen.tail);
  return seen;
}

bool fits(const Catalogue& catalogue, const Glimpse& seen, bool has_etags) {
  if (!runs_along(catalogue, 0, seen.first, seen.is_all, has_etags)) {
    return false;
  }
  return seen.is_all || catalogue.objects() < 2 ||
         runs_along(catalogue, catalogue.objects() - 1, seen.tail, true,
                    has_etags);
}

CatalogueChange change_between(const Catalogue& before, const Catalogue& now) {
  const bool has_etags = before.etag_kind() == now.etag_kind() &&
                         now.etag_kind() != EtagKind::kNone;
  return count_change(
      before, now.objects(),
      [&](std::uint64_t j) { return object_at(now, j).key; },
      [&](std::uint64_t i, std::uint64_t j) {
        const ObjectView object = object_at(now, j);
        return is_same(object_at(before, i),
                       {.key = std::string(object.key),
                        .size_bytes = object.size_bytes,
                        .etag = std::string(object.etag)},
                       has_etags);
      });
}

CatalogueChange change_between(const Catalogue& before,
                               const std::vector<ObjectInfo>& now,
                               bool has_etags) {
  return count_change(
      before, now.size(),
      [&](std::uint64_t j) { return std::string_view(now[j].key); },
      [&](std::uint64_t i, std::uint64_t j) {
        return is_same(object_at(before, i), now[j], has_etags);
      });
}

std::string age_for_people(std::chrono::sys_seconds listed_at,
                           std::chrono::sys_seconds now) {
  if (listed_at == std::chrono::sys_seconds()) return "of unknown age";
  const auto seconds = std::max<std::int64_t>((now - listed_at).count(), 0);
  if (seconds < 120) return fmt::format("of {} s ago", seconds);
  if (seconds < 120 * 60) return fmt::format("of {} min ago", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("of {} h ago", seconds / 3600);
  return fmt::format("of {} d ago", seconds / 86'400);
}

std::string describe(const CatalogueChange& change, std::string_view url,
                     std::chrono::sys_seconds listed_at,
                     std::chrono::sys_seconds now) {
  const auto objects = [](std::uint64_t count) {
    return fmt::format("{} object{}", count, count == 1 ? " was" : "s were");
  };
  std::string said = fmt::format("{}: {} added and {} removed", url,
                                 objects(change.added), change.removed);
  if (change.rewritten != 0) {
    said = fmt::format("{}: {} added, {} removed and {} written anew", url,
                       objects(change.added), change.removed, change.rewritten);
  }
  return fmt::format("{} since the catalogue {}; listed again", said,
                     age_for_people(listed_at, now));
}

Result<bool> has_true_objects(Store& store, std::string_view prefix,
                              const Catalogue& catalogue,
                              const std::stop_token& stop) {
  LEAT_CHECK(catalogue.objects() <= kMostAskedFor);
  std::vector<std::string> keys;
  for (std::uint64_t i = 0; i < catalogue.objects(); ++i) {
    keys.emplace_back(object_at(catalogue, i).key);
  }
  const auto doing = [&](std::size_t i) {
    return fmt::format("looking for '{}'", keys[i]);
  };
  const auto found = stat_all(store, prefix, keys, doing, {}, stop);
  if (!found) {
    if (found.error().code() == ErrorCode::kNotFound) return false;
    return found.error();
  }
  const bool has_etags = etags_apply(catalogue, store);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    ObjectInfo seen = (*found)[i];
    seen.key = keys[i];
    if (!is_same(object_at(catalogue, i), seen, has_etags)) return false;
  }
  return true;
}

Result<void> check_access(Store& store, std::string_view prefix,
                          const Catalogue& catalogue,
                          const std::stop_token& stop) {
  for (std::uint64_t i = 0; i < catalogue.objects(); ++i) {
    const ObjectView object = object_at(catalogue, i);
    if (object.size_bytes == 0) continue;
    Buffer byte(1);
    ReadRequest request;
    request.object.key = key_in_store(prefix, object.key);
    request.into = byte.span();
    const std::string key = request.object.key;
    Result<void> read = read_range(store, std::move(request), stop);
    if (read || read.error().code() != ErrorCode::kInvalidArgument) return read;
    // A server that ignores ranges gives access to whole objects.
    LEAT_TRY_VOID(store.stat(key, stop));
    return {};
  }
  return {};
}

SeenNote note_of(std::string seen, const Catalogue& catalogue) {
  return {.seen = std::move(seen),
          .catalogue = catalogue.digest().hex(),
          .versions = seen_versions(catalogue).hex()};
}

bool is_of(const SeenNote& note, const Catalogue& catalogue) {
  return note.catalogue == catalogue.digest().hex() &&
         note.versions == seen_versions(catalogue).hex();
}

std::optional<SeenNote> read_seen(const std::string& catalogue_path) {
  std::ifstream file(seen_path(catalogue_path), std::ios::binary);
  std::string text(kMostNoteBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(
      static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  if (!text.starts_with(kNoteBegin)) return std::nullopt;
  std::string_view rest = std::string_view(text).substr(kNoteBegin.size());
  auto seen = take_line(rest);
  auto catalogue = take_line(rest);
  auto versions = take_line(rest);
  if (!seen || !catalogue || !versions) return std::nullopt;
  return SeenNote{.seen = *std::move(seen),
                  .catalogue = *std::move(catalogue),
                  .versions = *std::move(versions)};
}

void write_seen(const std::string& catalogue_path, const SeenNote& note) {
  const std::string text = fmt::format("{}{}\n{}\n{}\n", kNoteBegin, note.seen,
                                       note.catalogue, note.versions);
  (void)write_catalogue(seen_path(catalogue_path), as_bytes(text));
}

bool was_checked_for_job(const std::string& catalogue_path) {
  std::error_code none;
  const FileTime checked =
      std::filesystem::last_write_time(seen_path(catalogue_path), none);
  // A time to come was written by a clock that was ahead, and tells nothing.
  if (none || checked > FileTime::clock::now() + kStartedTogether) return false;
  Asked& all = asked();
  const MutexLock lock(all.mutex);
  const auto found = all.at.find(catalogue_path);
  return checked > (found == all.at.end() ? process_began() - kStartedTogether
                                          : found->second);
}

void note_asked(const std::string& catalogue_path) {
  Asked& all = asked();
  const MutexLock lock(all.mutex);
  all.at[catalogue_path] = FileTime::clock::now();
}

}  // namespace leat
