// The tables that Catalogue::open() found, checked. Shared by its two sources.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
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
  TextColumn text;  ///< The texts of a kString field.
};

struct CatalogueTables {
  std::shared_ptr<const void> owner;
  std::uint64_t samples = 0;
  std::uint64_t objects = 0;
  /// The sum of all ranges' lengths; nullopt if they were not examined.
  std::optional<std::uint64_t> total_bytes = 0;
  Hash128 digest;
  Layout layout = Layout::kObjects;
  EtagKind etag_kind = EtagKind::kNone;
  std::vector<FieldSpec> fields;
  std::vector<std::string> classes;
  const std::byte* object_sizes = nullptr;
  TextColumn object_keys;
  TextColumn etags;        ///< Unset if etag_kind is kNone.
  TextColumn sample_keys;  ///< Possibly the object keys.
  std::vector<CatalogueColumn> columns;
};

}  // namespace leat
