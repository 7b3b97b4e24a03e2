// The tables that Catalogue::open() found, checked, or that join_catalogues()
// made. Shared by their sources.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/dataset/catalogue.h"
#include "leat/dataset/catalogue_format.h"

namespace leat {

/// Texts one after another, and where each ends. Text i begins where the one
/// before it ends.
struct TextColumn {
  const std::byte* ends = nullptr;
  std::uint32_t width = 4;
  const char* text = nullptr;
  std::uint64_t text_bytes = 0;

  std::uint64_t end(std::uint64_t i) const {
    return width == 4 ? catalogue_format::load<std::uint32_t>(ends + i * 4)
                      : catalogue_format::load<std::uint64_t>(ends + i * 8);
  }
  /// Never reaches outside the text, even if the ends were not checked.
  std::string_view at(std::uint64_t i) const {
    const std::uint64_t begin = i == 0 ? 0 : std::min(end(i - 1), text_bytes);
    const std::uint64_t last = std::clamp(end(i), begin, text_bytes);
    return {text + begin, last - begin};
  }
};

/// The values of one field.
struct CatalogueColumn {
  const std::byte* values = nullptr;
  std::uint32_t width = 0;
  TextColumn text;                       ///< The texts of a kString field.
  const std::byte* checksums = nullptr;  ///< A kBytes field's; may be null.
};

/// One of the catalogues that a joined one reads.
struct CataloguePart {
  std::shared_ptr<const Catalogue> from;
  std::uint64_t first_sample = 0;  ///< Those of the parts before it.
  std::uint64_t first_object = 0;
  /// By field of the joined catalogue, without that of the part's number: the
  /// part's own.
  std::vector<std::size_t> fields = {};
  /// By the part's label: the joined one. Empty: they are the same.
  std::vector<std::int64_t> labels = {};

  SampleId own(SampleId sample) const { return {sample.value - first_sample}; }
};

struct CatalogueTables {
  static constexpr std::size_t kNoField = static_cast<std::size_t>(-1);

  static Catalogue over(std::shared_ptr<const CatalogueTables> tables) {
    return Catalogue(std::move(tables));
  }
  /// Null if it is not joined. REQUIRES: there is such a sample.
  const CataloguePart* part_with(SampleId sample) const {
    return part_by(&CataloguePart::first_sample, sample.value);
  }
  const CataloguePart* part_with(ObjectIndex object) const {
    return part_by(&CataloguePart::first_object, object.value);
  }
  const CataloguePart* part_by(std::uint64_t CataloguePart::*first,
                               std::uint64_t number) const {
    if (parts.empty()) return nullptr;
    // The last that begins there or before: a part without any has the same
    // first as the next one.
    return &*(std::ranges::upper_bound(parts, number, {}, first) - 1);
  }

  std::shared_ptr<const void> owner;
  std::uint64_t samples = 0;
  std::uint64_t objects = 0;
  /// The sum of all ranges' lengths; nullopt if they were not examined.
  std::optional<std::uint64_t> total_bytes = 0;
  Hash128 digest;
  Layout layout = Layout::kObjects;
  EtagKind etag_kind = EtagKind::kNone;
  bool has_checksums = false;  ///< False if joined: each part says.
  std::vector<FieldSpec> fields;
  std::vector<std::string> classes;
  const std::byte* object_sizes = nullptr;
  TextColumn object_keys;
  TextColumn etags;        ///< Unset if etag_kind is kNone.
  TextColumn sample_keys;  ///< Possibly the object keys.
  std::vector<CatalogueColumn> columns;
  /// See Catalogue::pieces(): 8 bytes each.
  std::span<const std::byte> pieces;
  /// The parts of a joined catalogue, in order: all but the keys of objects is
  /// theirs.
  std::vector<CataloguePart> parts;
  std::size_t part_field = kNoField;   ///< The number of a sample's part.
  std::size_t label_field = kNoField;  ///< The one that is renumbered.
};

}  // namespace leat
