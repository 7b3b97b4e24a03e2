#include "leat/engine/sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "leat/base/errors.h"
#include "leat/index/brace_expansion.h"
#include "leat/index/container.h"
#include "leat/index/glob.h"
#include "leat/store/url.h"

namespace leat {
namespace {

constexpr std::size_t kNone = std::string_view::npos;

bool is_local(std::string_view source) {
  return source.find("://") == kNone || source.starts_with("file://");
}

std::string_view local_path(std::string_view source) {
  return source.starts_with("file://") ? source.substr(7) : source;
}

bool is_there(const std::string& source) {
  std::error_code failed;
  return is_local(source) &&
         std::filesystem::exists(std::string(local_path(source)), failed);
}

bool is_local_folder(const std::string& source) {
  std::error_code failed;
  return std::filesystem::is_directory(std::string(local_path(source)), failed);
}

/// The start of the path, behind "scheme://authority/". An HTTP query, which
/// has a '?', is left for parse_url() to refuse.
std::size_t path_begin(std::string_view source) {
  const std::size_t scheme = source.find("://");
  if (scheme == kNone) return 0;
  const std::size_t slash = source.find('/', scheme + 3);
  return slash == kNone ? source.size() : slash + 1;
}

bool has_glob(std::string_view path, bool is_http) {
  return is_http ? path.find_first_of("*[") != kNone : has_wildcards(path);
}

/// A folder and a name or glob below it; no pattern if the whole folder is
/// meant.
struct Piece {
  std::string folder;
  std::string pattern;
  bool is_there = false;   ///< It exists as written, with no wildcard in it.
  std::size_t source = 0;  ///< Its number among the given ones.
};

/// Cuts before the first wildcard or, without one, before the last part.
Piece cut(std::string_view source, std::size_t wildcard) {
  const std::size_t slash = source.rfind('/', wildcard);
  if (slash == kNone) return {.folder = ".", .pattern = std::string(source)};
  const std::string_view folder = source.substr(0, slash);
  return {.folder = folder.empty() ? "/" : std::string(folder),
          .pattern = std::string(source.substr(slash + 1))};
}

Result<Piece> piece_of(const std::string& source) {
  const bool is_http =
      source.starts_with("http://") || source.starts_with("https://");
  const std::size_t begin = path_begin(source);
  const std::string_view path = std::string_view(source).substr(begin);
  if (is_there(source)) {
    if (is_local_folder(source)) return Piece{.folder = source, .pattern = ""};
    Piece file = cut(source, kNone);
    file.is_there = true;
    return file;
  }
  if (!is_http && has_wildcards(std::string_view(source).substr(0, begin))) {
    return invalid(
        "'{}' has a wildcard in the bucket's name; braces name several "
        "buckets, as in s3://{{a,b}}/x",
        source);
  }
  if (has_glob(path, is_http)) {
    return cut(source, begin + path.find_first_of(is_http ? "*[" : "*?["));
  }
  if (path.empty() || path.ends_with('/') || !is_named_as_file(path)) {
    return Piece{.folder = source, .pattern = ""};
  }
  return cut(source, kNone);
}

/// The deepest folder that holds both; nullopt if they share none or are in
/// different buckets.
std::optional<std::string> common_folder(const std::string& a,
                                         const std::string& b) {
  const std::size_t begin = path_begin(a);
  if (path_begin(b) != begin || a.substr(0, begin) != b.substr(0, begin)) {
    // "s3://b" and "s3://b/x": the first has no slash at its end.
    if (a + "/" == b.substr(0, a.size() + 1)) return a;
    if (b + "/" == a.substr(0, b.size() + 1)) return b;
    return std::nullopt;
  }
  std::size_t common = begin;
  for (std::size_t i = begin; i <= std::max(a.size(), b.size()); ++i) {
    const bool ends_a = i == a.size() || (i < a.size() && a[i] == '/');
    const bool ends_b = i == b.size() || (i < b.size() && b[i] == '/');
    if (ends_a && ends_b) common = i;
    if (i >= a.size() || i >= b.size() || a[i] != b[i]) break;
  }
  std::string folder = a.substr(0, common);
  while (folder.size() > 1 && folder.ends_with('/') &&
         !folder.ends_with("://")) {
    folder.pop_back();
  }
  if (folder.empty()) return std::nullopt;
  return folder;
}

/// Patterns that share one place.
struct Group {
  std::string folder;
  std::vector<Piece> pieces;
  std::size_t source = 0;  ///< Its first among the given sources.
  bool is_of_shards = false;

  /// True if the piece belongs to this group, whose folder may have to grow.
  bool takes(const Piece& piece, std::size_t from) {
    if (pieces.empty() || piece.pattern.empty()) return false;
    if (piece.folder != folder && from != source &&
        !(is_of_shards && is_shard(piece.pattern))) {
      return false;
    }
    const auto common = common_folder(folder, piece.folder);
    if (!common) return false;
    folder = *common;
    return true;
  }

  SourcePlace place(const Selection& chosen) const {
    SourcePlace place{.url = folder, .selection = chosen};
    place.selection.patterns.clear();
    for (const Piece& piece : pieces) {
      std::string pattern = piece.folder == folder
                                ? ""
                                : piece.folder.substr(folder.size()) + "/";
      pattern.erase(0, pattern.find_first_not_of('/'));
      place.selection.patterns.push_back(pattern + piece.pattern);
      place.sources.push_back(piece.source);
    }
    return place;
  }
};

/// Escapes each wildcard character as a set of itself.
std::string literally(std::string_view name) {
  std::string escaped;
  for (const char c : name) {
    const bool is_wild = c == '*' || c == '?' || c == '[';
    escaped += is_wild ? fmt::format("[{}]", c) : std::string(1, c);
  }
  return escaped;
}

Result<std::vector<Piece>> pieces_of(const std::string& source) {
  std::vector<std::string> texts{source};
  if (!is_there(source)) {
    LEAT_TRY(texts, expand_braces(source));
  }
  std::vector<Piece> pieces;
  for (const std::string& text : texts) {
    LEAT_TRY(Piece piece, piece_of(text));
    if (piece.is_there) piece.pattern = literally(piece.pattern);
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

std::string full_key(const Dataset& place, std::string_view key) {
  const Result<Url> url = parse_url(place.url);
  return fmt::format("{}/{}", url ? url->text() : place.url, key);
}

/// True if one of the places lies in another, so that objects can be in both.
bool may_overlap(std::span<const Dataset> places) {
  for (const Dataset& a : places) {
    for (const Dataset& b : places) {
      if (&a != &b && (full_key(b, "").starts_with(full_key(a, "")))) {
        return true;
      }
    }
  }
  return false;
}

Error in_two_sources(const std::string& key) {
  return invalid(
      "{} is in two of the sources, so its samples would come twice; name it "
      "once, or join datasets with concat where that is meant",
      key);
}

/// The sources that share a place: most of their patterns are names, and there
/// may be many.
class Sharers {
 public:
  static Result<Sharers> make(const SourcePlace& place) {
    Sharers sharers;
    for (std::size_t i = 0; i < place.sources.size(); ++i) {
      const std::string& pattern = place.selection.patterns[i];
      const std::size_t source = place.sources[i];
      if (has_wildcards(pattern)) {
        LEAT_TRY(Glob glob, Glob::parse(pattern));
        sharers.globs_.emplace_back(std::move(glob), source);
      } else if (const auto [known, is_new] =
                     sharers.names_.emplace(pattern, source);
                 !is_new && known->second != source) {
        known->second = kMany;
      }
    }
    return sharers;
  }

  bool is_in_two(std::string_view key) const {
    const auto name = names_.find(key);
    std::size_t first = name == names_.end() ? kNone : name->second;
    if (first == kMany) return true;
    for (const auto& [glob, source] : globs_) {
      if (source == first || !glob.matches(key)) continue;
      if (first != kNone) return true;
      first = source;
    }
    return false;
  }

 private:
  static constexpr std::size_t kMany = kNone - 1;

  std::map<std::string, std::size_t, std::less<>> names_;
  std::vector<std::pair<Glob, std::size_t>> globs_;
};

Result<void> check_shared(const SourcePlace& place, const Dataset& opened) {
  const bool is_shared =
      std::ranges::adjacent_find(place.sources, std::not_equal_to<>()) !=
      place.sources.end();
  if (!is_shared) return {};
  LEAT_TRY(const Sharers sharers, Sharers::make(place));
  for (std::uint32_t i = 0; i < opened.catalogue->objects(); ++i) {
    const std::string_view key = opened.catalogue->object({i}).key;
    if (sharers.is_in_two(key)) return in_two_sources(full_key(opened, key));
  }
  return {};
}

Result<void> check_disjoint(std::span<const Dataset> places) {
  if (!may_overlap(places)) return {};
  std::set<std::string> seen;
  for (const Dataset& place : places) {
    for (std::uint32_t i = 0; i < place.catalogue->objects(); ++i) {
      std::string key = full_key(place, place.catalogue->object({i}).key);
      if (!seen.contains(key)) {
        seen.insert(std::move(key));
        continue;
      }
      return in_two_sources(key);
    }
  }
  return {};
}

template <class Open>
Result<Dataset> open_places(std::span<const SourcePlace> places,
                            const Open& open) {
  std::vector<Dataset> opened;
  for (const SourcePlace& place : places) {
    LEAT_TRY(Dataset dataset, open(place));
    LEAT_TRY_VOID(check_shared(place, dataset));
    opened.push_back(std::move(dataset));
  }
  if (opened.size() == 1) return std::move(opened.front());
  LEAT_TRY_VOID(check_disjoint(opened));
  return join_datasets(opened);
}

/// Opens a selection of what is at a place.
Result<Dataset> open_selection(const SourcePlace& place,
                               const StoreOptions& store,
                               const CatalogueOptions& options, const Env& env,
                               const std::stop_token& stop) {
  auto opening = std::make_shared<Metrics>();
  LEAT_TRY(const OpenedStore opened,
           open_store(place.url, store, env, opening.get()));
  CatalogueOptions of_place = options;
  of_place.index.selection = place.selection;
  LEAT_TRY(const OpenedCatalogue found,
           open_or_build(*opened.store, opened.prefix,
                         fmt::format("{}\nselection {}", opened.identity,
                                     place.selection.text()),
                         of_place, env, stop));
  return dataset_of(place.url, store, found, std::move(opening));
}

}  // namespace

Result<std::vector<SourcePlace>> places_of(std::span<const std::string> sources,
                                           const Selection& chosen) {
  std::vector<Group> groups;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    LEAT_TRY(std::vector<Piece> pieces, pieces_of(sources[i]));
    for (Piece& piece : pieces) {
      piece.source = i;
      const auto group = std::ranges::find_if(
          groups, [&](Group& each) { return each.takes(piece, i); });
      if (group != groups.end()) {
        group->is_of_shards &= is_shard(piece.pattern);
        group->pieces.push_back(std::move(piece));
        continue;
      }
      if (groups.size() == kMostPlaces) {
        return invalid(
            "the sources are more than {} places; name the folder that holds "
            "them, with wildcards",
            kMostPlaces);
      }
      Group made{.folder = piece.folder, .pieces = {}, .source = i};
      if (!piece.pattern.empty()) {
        made.is_of_shards = is_shard(piece.pattern);
        made.pieces.push_back(std::move(piece));
      }
      groups.push_back(std::move(made));
    }
  }
  if (groups.empty()) {
    return invalid("no source is given: the list of URLs is empty");
  }
  std::vector<SourcePlace> places;
  for (const Group& group : groups) places.push_back(group.place(chosen));
  return places;
}

bool is_plain_place(const std::string& url) {
  const auto places = places_of(std::span(&url, 1), {});
  return !places ||
         (places->size() == 1 && places->front().selection.is_usual());
}

Result<Dataset> open_sources(std::span<const std::string> sources,
                             const Selection& chosen, const StoreOptions& store,
                             const CatalogueOptions& options, const Env& env,
                             const std::stop_token& stop) {
  LEAT_TRY(const std::vector<SourcePlace> places, places_of(sources, chosen));
  return open_places(places, [&](const SourcePlace& place) {
    return place.selection.is_usual()
               ? open_dataset(place.url, store, options, env, stop)
               : open_selection(place, store, options, env, stop);
  });
}

Result<Dataset> open_token_sources(std::span<const std::string> sources,
                                   const Selection& chosen,
                                   const StoreOptions& store,
                                   const TokenWindows& windows,
                                   const CatalogueOptions& options,
                                   const Env& env,
                                   const std::stop_token& stop) {
  LEAT_TRY(const std::vector<SourcePlace> places, places_of(sources, chosen));
  return open_places(places, [&](const SourcePlace& place) {
    CatalogueOptions of_place = options;
    of_place.index.selection = place.selection;
    return open_tokens(place.url, store, windows, of_place, env, stop);
  });
}

}  // namespace leat
