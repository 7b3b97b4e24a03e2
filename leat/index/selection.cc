#include "leat/index/selection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <utility>

#include "leat/base/errors.h"
#include "leat/codec/image/image_codec.h"
#include "leat/index/container.h"
#include "leat/index/folder_layout.h"
#include "leat/index/glob.h"

namespace leat {
namespace {

using Objects = std::vector<ObjectInfo>;
using Names = std::vector<std::string>;

constexpr std::array<std::string_view, 17> kDocumentEnds = {
    ".md",    ".markdown", ".rst",    ".csv", ".tsv", ".yaml",
    ".yml",   ".html",     ".pdf",    ".py",  ".sh",  ".log",
    ".ipynb", ".md5",      ".sha256", ".ini", ".db"};
constexpr std::array<std::string_view, 5> kDocumentNames = {
    "readme", "license", "licence", "copying", "changelog"};
constexpr std::array<std::string_view, 40> kFileEnds = {
    ".bmp",     ".gif",   ".ppm",  ".pgm",   ".avif", ".jp2",  ".heic", ".jxl",
    ".npy",     ".npz",   ".json", ".jsonl", ".txt",  ".bin",  ".csv",  ".tsv",
    ".wav",     ".mp3",   ".flac", ".ogg",   ".mp4",  ".webm", ".mkv",  ".avi",
    ".mov",     ".pt",    ".pth",  ".pkl",   ".cls",  ".gz",   ".zst",  ".zip",
    ".parquet", ".arrow", ".h5",   ".hdf5",  ".hdf",  ".he5",  ".nc",   ".nc4"};

std::string lower(std::string_view text) {
  std::string made(text);
  for (char& c : made) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return made;
}

bool ends_with_any(std::string_view key, const auto& ends) {
  const std::string name = lower(key.substr(key.rfind('/') + 1));
  return std::ranges::any_of(
      ends, [&](std::string_view end) { return name.ends_with(end); });
}

/// The ends of the images that leat/codec decodes: ".jpg".
const Names& image_ends() {
  static const Names kEnds = [] {
    Names ends;
    for (const ImageCodec* codec : image_codecs()) {
      for (const std::string_view ending : codec->endings) {
        ends.push_back("." + std::string(ending));
      }
    }
    return ends;
  }();
  return kEnds;
}

/// "jpg", ".JPG": ".jpg".
std::string dotted(std::string_view extension) {
  const std::string end = lower(extension);
  return end.starts_with('.') ? end : "." + end;
}

Result<std::vector<Glob>> globs_of(const Names& patterns) {
  std::vector<Glob> globs;
  for (const std::string& pattern : patterns) {
    LEAT_TRY(Glob glob, Glob::parse(pattern));
    globs.push_back(std::move(glob));
  }
  return globs;
}

/// The patterns of a source: most are names, and there may be many.
class Source {
 public:
  static Result<Source> make(const Names& patterns) {
    Source source;
    Names wild;
    for (const std::string& pattern : patterns) {
      if (has_wildcards(pattern)) {
        wild.push_back(pattern);
      } else {
        source.names_.insert(pattern);
      }
    }
    LEAT_TRY(source.globs_, globs_of(wild));
    source.is_met_.resize(source.globs_.size());
    return source;
  }

  bool is_everything() const { return names_.empty() && globs_.empty(); }

  bool takes(const std::string& key) {
    bool takes = false;
    if (const auto name = names_.find(key); name != names_.end()) {
      met_names_.insert(*name);
      takes = true;
    }
    for (std::size_t i = 0; i < globs_.size(); ++i) {
      if (is_met_[i] && takes) continue;
      if (!globs_[i].matches(key)) continue;
      is_met_[i] = true;
      takes = true;
    }
    return takes;
  }

  /// A pattern that no object has met; null if there is none.
  const std::string* unmet() const {
    for (const std::string& name : names_) {
      if (!met_names_.contains(name)) return &name;
    }
    const auto glob = std::ranges::find(is_met_, false);
    if (glob == is_met_.end()) return nullptr;
    return &globs_[static_cast<std::size_t>(glob - is_met_.begin())].text();
  }

 private:
  std::set<std::string, std::less<>> names_;
  std::set<std::string_view> met_names_;
  std::vector<Glob> globs_;
  std::vector<bool> is_met_;
};

/// The user's include=, exclude= and extensions=.
struct Filters {
  std::vector<Glob> include;
  std::vector<Glob> exclude;
  Names ends;
  bool takes_all_ends = false;

  static Result<Filters> make(const Selection& selection) {
    Filters filters;
    LEAT_TRY(filters.include, globs_of(selection.include));
    LEAT_TRY(filters.exclude, globs_of(selection.exclude));
    for (const std::string& extension : selection.extensions) {
      filters.takes_all_ends |= extension == "*";
      filters.ends.push_back(dotted(extension));
    }
    return filters;
  }

  /// Why something is left out.
  std::string why() const {
    std::string why = "by include=, exclude= or extensions=";
    if (ends.empty() || takes_all_ends) return why;
    return why + fmt::format(" (names end in {})", fmt::join(ends, ", "));
  }

  bool takes(std::string_view key) const {
    const auto meets = [&](const Glob& glob) {
      return glob.matches_anywhere(key);
    };
    if (!include.empty() && std::ranges::none_of(include, meets)) return false;
    if (std::ranges::any_of(exclude, meets)) return false;
    return ends.empty() || takes_all_ends || ends_with_any(key, ends) ||
           ends_with_any(without_shard_number(key), ends);
  }
};

/// True if a pattern of the user's says how names end, as "*.csv" does and
/// "train/**" does not.
bool names_ends(const Selection& selection) {
  const auto says = [](const Names& patterns) {
    return !patterns.empty() &&
           std::ranges::none_of(patterns, [](const std::string& pattern) {
             return pattern.ends_with('*');
           });
  };
  return says(selection.patterns) || says(selection.include);
}

/// True if nobody says which ends of names count.
bool takes_usual(const Filters& filters, const Selection& selection) {
  return filters.ends.empty() && !names_ends(selection);
}

/// Takes out what `is_out` says of; counts it and keeps the first.
struct LeftOut {
  std::size_t count = 0;
  std::string example;

  void take_from(Objects& objects,
                 const std::function<bool(const std::string&)>& is_out) {
    std::erase_if(objects, [&](const ObjectInfo& object) {
      if (!is_out(object.key)) return false;
      if (count++ == 0) example = object.key;
      return true;
    });
  }
};

std::string words(const LeftOut& left_out, std::string_view why) {
  if (left_out.count == 1) {
    return fmt::format("'{}' is left out: {}", left_out.example, why);
  }
  return fmt::format("{} objects are left out, such as '{}': {}",
                     left_out.count, left_out.example, why);
}

/// Images alone where at least half are images, else all but documents where
/// those are fewer than the rest; beside shards no documents.
std::string take_usual(Objects& objects) {
  std::size_t images = 0;
  std::size_t documents = 0;
  bool has_shards = false;
  for (const ObjectInfo& object : objects) {
    images += is_image(object.key) ? 1 : 0;
    documents += is_document(object.key) ? 1 : 0;
    has_shards |= is_shard(object.key);
  }
  LeftOut left_out;
  std::string_view why;
  if (!has_shards && 2 * images >= objects.size()) {
    left_out.take_from(objects,
                       [](const std::string& key) { return !is_image(key); });
    why = "most are images, and images alone are samples then";
  } else if (has_shards || 2 * documents <= objects.size()) {
    left_out.take_from(objects, is_document);
    why = "it seems to be no data";
  }
  if (left_out.count == 0) return "";
  return words(left_out, why) +
         "; extensions=\"*\" takes all, and extensions= or include= what they "
         "say";
}

Error nothing_left(const LeftOut& left_out) {
  return not_found(
      "none of the {} objects is what include=, exclude= and extensions= "
      "leave; '{}' is one of them",
      left_out.count, left_out.example);
}

}  // namespace

bool Selection::is_usual() const {
  return patterns.empty() && include.empty() && exclude.empty() &&
         extensions.empty();
}

Names Selection::names() const {
  return std::ranges::any_of(patterns, has_wildcards) ? Names() : patterns;
}

std::string Selection::text() const {
  std::string text;
  for (const Names* const names :
       {&patterns, &include, &exclude, &extensions}) {
    text += fmt::format("{}:", names->size());
    for (const std::string& name : *names) {
      text += fmt::format("{} {}", name.size(), name);
    }
  }
  return text;
}

bool is_image(std::string_view key) { return ends_with_any(key, image_ends()); }

bool is_document(std::string_view key) {
  if (ends_with_any(key, kDocumentEnds)) return true;
  const std::string name = lower(key.substr(key.rfind('/') + 1));
  return std::ranges::find(kDocumentNames, name.substr(0, name.find('.'))) !=
         kDocumentNames.end();
}

bool is_named_as_file(std::string_view name) {
  return is_image(name) || is_shard(lower(name)) ||
         ends_with_any(name, kFileEnds);
}

Result<Selected> select_objects(Objects objects, const Selection& selection) {
  LEAT_TRY(Source source, Source::make(selection.patterns));
  LEAT_TRY(const Filters filters, Filters::make(selection));
  std::erase_if(objects, [](const ObjectInfo& o) { return is_hidden(o.key); });
  if (objects.empty()) {
    return not_found("there are no objects (hidden ones do not count)");
  }
  if (!source.is_everything()) {
    std::erase_if(objects,
                  [&](const ObjectInfo& o) { return !source.takes(o.key); });
    if (const std::string* const unmet = source.unmet()) {
      return not_found("there is no object '{}'", *unmet);
    }
  }
  Selected selected;
  LeftOut left_out;
  left_out.take_from(
      objects, [&](const std::string& key) { return !filters.takes(key); });
  if (objects.empty()) return nothing_left(left_out);
  if (left_out.count != 0) {
    selected.left_out = words(left_out, filters.why());
  }
  if (takes_usual(filters, selection)) {
    const std::string more = take_usual(objects);
    if (!more.empty() && !selected.left_out.empty()) selected.left_out += "; ";
    selected.left_out += more;
  }
  selected.objects = std::move(objects);
  return selected;
}

Objects select_some(Objects objects, const Selection& selection) {
  Result<Source> source = Source::make(selection.patterns);
  const Result<Filters> filters = Filters::make(selection);
  if (!source || !filters) return objects;  // No catalogue was made of it.
  std::erase_if(objects, [&](const ObjectInfo& object) {
    return is_hidden(object.key) || !filters->takes(object.key) ||
           (!source->is_everything() && !source->takes(object.key));
  });
  if (takes_usual(*filters, selection)) take_usual(objects);
  return objects;
}

}  // namespace leat
