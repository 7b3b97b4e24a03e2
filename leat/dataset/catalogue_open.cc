// Checks a catalogue once, so that no accessor has to.
//
// Sections come in a fixed order without gaps, so reading is a walk: each step
// says which section must come and what it must hold. Every number that is used
// as an offset is checked here: the ends of texts rise and the last is the
// text's length, and ranges lie inside their objects.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/errors.h"
#include "leat/dataset/catalogue.h"
#include "leat/dataset/catalogue_tables.h"

namespace leat {
namespace {

using catalogue_format::Header;
using catalogue_format::kHeaderCrcOffset;
using catalogue_format::kMagic;
using catalogue_format::kMostObjects;
using catalogue_format::kMostSamples;
using catalogue_format::kRangeBytes;
using catalogue_format::kVersion;
using catalogue_format::kVersionWithoutPieces;
using catalogue_format::load;
using catalogue_format::PackedRange;
using catalogue_format::SampleKeys;
using catalogue_format::SectionEntry;
using catalogue_format::SectionKind;
using catalogue_format::unpack;

Error damaged(std::string message) {
  return Error(ErrorCode::kCorrupt, "catalogue: " + std::move(message));
}

struct Section {
  std::span<const std::byte> bytes;
  std::uint32_t width = 0;
};

/// True for sections that are copied when a catalogue is opened.
constexpr bool is_small(SectionKind kind) {
  return kind == SectionKind::kFields || kind == SectionKind::kClasses ||
         kind == SectionKind::kPieces;
}

/// Walks over the sections in the order that the format prescribes.
class SectionReader {
 public:
  SectionReader(std::span<const std::byte> file, std::uint32_t sections,
                CatalogueChecks checks)
      : file_(file),
        sections_(sections),
        checks_(checks),
        next_offset_(sizeof(Header) + sections * sizeof(SectionEntry)) {}

  /// The next section, which must be this one; its CRC is checked.
  Result<Section> take(SectionKind kind, std::size_t field = 0) {
    const auto name = [&] { return section_name(kind, field); };
    if (next_ == sections_) return damaged(name() + " are missing");
    const auto entry = load<SectionEntry>(file_.data() + sizeof(Header) +
                                          next_++ * sizeof(SectionEntry));
    if (entry.kind != static_cast<std::uint32_t>(kind) ||
        entry.field != field) {
      return damaged(fmt::format("section {} is of kind {}, not {}", next_ - 1,
                                 entry.kind, name()));
    }
    if (entry.offset != next_offset_ ||
        entry.length > file_.size() - next_offset_) {
      return damaged(name() + " lie outside the file");
    }
    const auto bytes = file_.subspan(entry.offset, entry.length);
    next_offset_ += entry.length;
    if ((checks_all() || is_small(kind)) && crc32c(bytes) != entry.crc) {
      return damaged("the checksum of " + name() + " does not match");
    }
    return Section{.bytes = bytes, .width = entry.width};
  }

  /// The next section, which must hold `count` values of an allowed width.
  Result<Section> take_values(SectionKind kind, std::size_t field,
                              std::uint64_t count,
                              std::initializer_list<std::uint32_t> widths) {
    LEAT_TRY(const Section section, take(kind, field));
    // No overflow: counts are at most 2^40 and widths at most 16.
    if (std::ranges::find(widths, section.width) == widths.end() ||
        section.bytes.size() != count * section.width) {
      return damaged(fmt::format("{} do not hold {} values",
                                 section_name(kind, field), count));
    }
    return section;
  }

  /// The next two sections: the ends of texts, and the texts.
  Result<TextColumn> take_texts(SectionKind ends_kind, SectionKind text_kind,
                                std::size_t field, std::uint64_t count) {
    LEAT_TRY(const Section ends, take_values(ends_kind, field, count, {4, 8}));
    LEAT_TRY(const Section text, take(text_kind, field));
    const bool good =
        !checks_all() ? true
        : ends.width == 4
            ? rises_to<std::uint32_t>(ends.bytes, text.bytes.size())
            : rises_to<std::uint64_t>(ends.bytes, text.bytes.size());
    if (!good) {
      return damaged(section_name(ends_kind, field) +
                     " point outside their text");
    }
    return TextColumn{.ends = ends.bytes.data(),
                      .width = ends.width,
                      .text = as_text(text.bytes).data(),
                      .text_bytes = text.bytes.size()};
  }

  /// True if every byte is read when it is opened.
  bool checks_all() const { return checks_ == CatalogueChecks::kAll; }

  Result<void> at_end() const {
    if (next_ != sections_ || next_offset_ != file_.size()) {
      return damaged("there is more after the last section");
    }
    return {};
  }

 private:
  static std::string section_name(SectionKind kind, std::size_t field) {
    std::string name = fmt::format("the {}", to_string(kind));
    if (kind >= SectionKind::kRanges && kind != SectionKind::kPieces) {
      name += fmt::format(" of field {}", field);
    }
    return name;
  }

  template <class T>
  static bool rises_to(std::span<const std::byte> ends, std::uint64_t last) {
    const std::uint64_t count = ends.size() / sizeof(T);
    T before = 0;
    bool rises = true;  // No early exit: the loop stays free of branches.
    for (std::uint64_t i = 0; i < count; ++i) {
      const T end = load<T>(ends.data() + i * sizeof(T));
      rises &= end >= before;
      before = end;
    }
    return rises && before == last;
  }

  const std::span<const std::byte> file_;
  const std::uint32_t sections_;
  const CatalogueChecks checks_;
  std::uint32_t next_ = 0;
  std::uint64_t next_offset_;
};

/// Reads the length-prefixed texts of the small sections.
class ListReader {
 public:
  explicit ListReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class T>
  std::optional<T> number() {
    if (rest_.size() < sizeof(T)) return std::nullopt;
    const T value = load<T>(rest_.data());
    rest_ = rest_.subspan(sizeof(T));
    return value;
  }

  std::optional<std::string> text() {
    const auto length = number<std::uint32_t>();
    if (!length || *length > rest_.size()) return std::nullopt;
    std::string text(as_text(rest_.first(*length)));
    rest_ = rest_.subspan(*length);
    return text;
  }

  bool is_at_end() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
};

Result<std::vector<FieldSpec>> read_fields(std::span<const std::byte> bytes) {
  std::vector<FieldSpec> fields;
  std::set<std::string> names;
  for (ListReader list(bytes); !list.is_at_end();) {
    const auto kind = list.number<std::uint8_t>();
    auto name = list.text();
    if (!name || *kind > static_cast<std::uint8_t>(FieldKind::kString) ||
        !names.insert(*name).second) {
      return damaged("the fields cannot be read");
    }
    fields.push_back({*std::move(name), static_cast<FieldKind>(*kind)});
  }
  return fields;
}

Result<std::vector<std::string>> read_classes(
    std::span<const std::byte> bytes) {
  std::vector<std::string> classes;
  for (ListReader list(bytes); !list.is_at_end();) {
    auto name = list.text();
    if (!name) return damaged("the classes cannot be read");
    classes.push_back(*std::move(name));
  }
  return classes;
}

Result<Header> read_start(std::span<const std::byte> file) {
  const std::size_t seen = std::min(file.size(), kMagic.size());
  if (seen != 0 && std::memcmp(file.data(), kMagic.data(), seen) != 0) {
    return invalid("not a catalogue of Leat");
  }
  if (file.size() < sizeof(Header)) return damaged("cut short in its header");
  const auto header = load<Header>(file.data());
  if (header.version != kVersion && header.version != kVersionWithoutPieces) {
    return invalid(
        "catalogue of version {}, and this Leat reads version {}: make it "
        "again with `leat index --refresh`",
        header.version, kVersion);
  }
  return header;
}

Result<Header> read_header(std::span<const std::byte> file) {
  LEAT_TRY(const Header header, read_start(file));
  if (header.file_bytes != file.size()) {
    return damaged(fmt::format("it should have {} bytes and has {}",
                               header.file_bytes, file.size()));
  }
  const std::uint64_t table =
      std::uint64_t{header.sections} * sizeof(SectionEntry);
  if (table > file.size() - sizeof(Header)) {
    return damaged("its section table lies outside the file");
  }
  if (crc32c(file.subspan(sizeof(Header), table),
             crc32c(file.first(kHeaderCrcOffset))) != header.crc) {
    return damaged("the checksum of the header does not match");
  }
  return header;
}

Result<void> check_header(const Header& header) {
  if (header.samples > kMostSamples || header.objects > kMostObjects ||
      header.layout > static_cast<std::uint8_t>(Layout::kShards) ||
      header.etag_kind > static_cast<std::uint8_t>(EtagKind::kOther) ||
      header.sample_keys > static_cast<std::uint8_t>(SampleKeys::kOwn) ||
      header.has_checksums > 1) {
    return damaged("the header holds a value that cannot be");
  }
  const bool own_keys =
      header.sample_keys == static_cast<std::uint8_t>(SampleKeys::kOwn);
  if (!own_keys && header.samples != header.objects) {
    return damaged("its samples are not its objects");
  }
  return {};
}

std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) {
  return a > std::numeric_limits<std::uint64_t>::max() - b
             ? std::numeric_limits<std::uint64_t>::max()
             : a + b;
}

/// Adds up the lengths; nullopt if a range lies outside its object.
std::optional<std::uint64_t> check_ranges(std::span<const std::byte> ranges,
                                          std::span<const std::byte> sizes) {
  const std::uint64_t objects = sizes.size() / 8;
  std::uint64_t total = 0;
  for (std::size_t at = 0; at < ranges.size(); at += kRangeBytes) {
    const ByteRange range = unpack(load<PackedRange>(ranges.data() + at));
    std::uint64_t size = 0;  // Missing ranges count, too.
    if (range.object.value < objects) {
      size = load<std::uint64_t>(sizes.data() + range.object.value * 8ULL);
    } else if (!range.is_missing()) {
      return std::nullopt;
    }
    // No overflow: both are below 2^48.
    if (range.offset + range.length_bytes > size) return std::nullopt;
    total = saturating_add(total, range.length_bytes);
  }
  return total;
}

Result<void> read_names(SectionReader& sections, CatalogueTables& tables) {
  LEAT_TRY(const Section fields, sections.take(SectionKind::kFields));
  LEAT_TRY(tables.fields, read_fields(fields.bytes));
  LEAT_TRY(const Section classes, sections.take(SectionKind::kClasses));
  LEAT_TRY(tables.classes, read_classes(classes.bytes));
  return {};
}

Result<void> read_objects(SectionReader& sections, CatalogueTables& tables) {
  LEAT_TRY(const Section sizes, sections.take_values(SectionKind::kObjectSizes,
                                                     0, tables.objects, {8}));
  tables.object_sizes = sizes.bytes.data();
  LEAT_TRY(tables.object_keys,
           sections.take_texts(SectionKind::kObjectKeyEnds,
                               SectionKind::kObjectKeyText, 0, tables.objects));
  if (tables.etag_kind == EtagKind::kNone) return {};
  LEAT_TRY(tables.etags,
           sections.take_texts(SectionKind::kEtagEnds, SectionKind::kEtagText,
                               0, tables.objects));
  return {};
}

Result<void> read_sample_keys(SectionReader& sections, SampleKeys keys,
                              CatalogueTables& tables) {
  if (keys == SampleKeys::kOfObjects) {
    tables.sample_keys = tables.object_keys;
    return {};
  }
  LEAT_TRY(tables.sample_keys,
           sections.take_texts(SectionKind::kSampleKeyEnds,
                               SectionKind::kSampleKeyText, 0, tables.samples));
  return {};
}

Result<Section> take_ranges(SectionReader& sections, std::size_t field,
                            CatalogueTables& tables) {
  LEAT_TRY(const Section ranges,
           sections.take_values(SectionKind::kRanges, field, tables.samples,
                                {kRangeBytes}));
  if (!sections.checks_all()) {
    tables.total_bytes.reset();
    return ranges;
  }
  const auto total =
      check_ranges(ranges.bytes, {tables.object_sizes, tables.objects * 8});
  if (!total) {
    return damaged(
        fmt::format("a range of field {} lies outside its object", field));
  }
  if (tables.total_bytes) {
    tables.total_bytes = saturating_add(*tables.total_bytes, *total);
  }
  return ranges;
}

Result<void> read_column(SectionReader& sections, std::size_t field,
                         CatalogueTables& tables) {
  CatalogueColumn column;
  Section values;
  switch (tables.fields[field].kind) {
    case FieldKind::kBytes: {
      LEAT_TRY(values, take_ranges(sections, field, tables));
      if (tables.has_checksums) {
        LEAT_TRY(const Section checksums,
                 sections.take_values(SectionKind::kChecksums, field,
                                      tables.samples, {4}));
        column.checksums = checksums.bytes.data();
      }
      break;
    }
    case FieldKind::kInt64: {
      LEAT_TRY(values, sections.take_values(SectionKind::kInt64, field,
                                            tables.samples, {1, 2, 4, 8}));
      break;
    }
    case FieldKind::kFloat64: {
      LEAT_TRY(values, sections.take_values(SectionKind::kFloat64, field,
                                            tables.samples, {4, 8}));
      break;
    }
    case FieldKind::kString: {
      LEAT_TRY(column.text, sections.take_texts(SectionKind::kStringEnds,
                                                SectionKind::kStringText, field,
                                                tables.samples));
      break;
    }
  }
  column.values = values.bytes.data();
  column.width = values.width;
  tables.columns.push_back(column);
  return {};
}

/// The places at which shards are cut rise from the first sample to the end.
Result<void> read_pieces(SectionReader& sections, CatalogueTables& tables) {
  LEAT_TRY(const Section pieces, sections.take(SectionKind::kPieces));
  const std::uint64_t count = pieces.bytes.size() / 8;
  const auto at = [&](std::uint64_t i) {
    return load<std::uint64_t>(pieces.bytes.data() + i * 8);
  };
  bool is_good = pieces.width == 8 && pieces.bytes.size() % 8 == 0 &&
                 count != 0 && at(0) == 0 && at(count - 1) == tables.samples;
  for (std::uint64_t i = 1; is_good && i < count; ++i) {
    is_good = at(i) >= at(i - 1);
  }
  if (!is_good) return damaged("the pieces do not cover the samples");
  tables.pieces = pieces.bytes;
  return {};
}

}  // namespace

Result<std::uint64_t> Catalogue::length_of(std::span<const std::byte> start) {
  static_assert(kHeaderBytes == sizeof(Header));
  LEAT_TRY(const Header header, read_start(start));
  return header.file_bytes;
}

Result<Catalogue> Catalogue::open(Buffer file) {
  auto held = std::make_shared<const Buffer>(std::move(file));
  const std::span<const std::byte> bytes = held->span();
  return open(bytes, std::move(held));
}

Result<Catalogue> Catalogue::open(std::span<const std::byte> file,
                                  std::shared_ptr<const void> owner,
                                  CatalogueChecks checks) {
  LEAT_TRY(const Header header, read_header(file));
  LEAT_TRY_VOID(check_header(header));
  auto tables = std::make_shared<CatalogueTables>();
  tables->owner = std::move(owner);
  tables->samples = header.samples;
  tables->objects = header.objects;
  tables->digest = {.high = header.digest_high, .low = header.digest_low};
  tables->layout = static_cast<Layout>(header.layout);
  tables->etag_kind = static_cast<EtagKind>(header.etag_kind);
  tables->has_checksums = header.has_checksums != 0;

  SectionReader sections(file, header.sections, checks);
  LEAT_TRY_VOID(read_names(sections, *tables));
  LEAT_TRY_VOID(read_objects(sections, *tables));
  LEAT_TRY_VOID(read_sample_keys(
      sections, static_cast<SampleKeys>(header.sample_keys), *tables));
  for (std::size_t i = 0; i < tables->fields.size(); ++i) {
    LEAT_TRY_VOID(read_column(sections, i, *tables));
  }
  if (header.version != kVersionWithoutPieces &&
      tables->layout == Layout::kShards) {
    LEAT_TRY_VOID(read_pieces(sections, *tables));
  }
  LEAT_TRY_VOID(sections.at_end());
  return Catalogue(std::move(tables));
}

}  // namespace leat
