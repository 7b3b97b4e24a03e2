// Lays the sections of a catalogue out and writes them. For the writer alone.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/hash.h"
#include "leat/dataset/catalogue_format.h"
#include "leat/dataset/catalogue_writer.h"

namespace leat {

/// The offset and bytes of each section of a finished CatalogueWriter.
/// Lifetime: the writer must outlive it, unchanged until write(), which frees
/// what it has written.
class CatalogueLayout {
 public:
  explicit CatalogueLayout(CatalogueWriter& writer);

  Buffer write() &&;

 private:
  using Write = std::function<void(std::span<std::byte> into)>;
  struct Section {
    catalogue_format::SectionEntry entry;
    Write write;
  };

  void add(catalogue_format::SectionKind kind, std::size_t field,
           std::uint32_t width, std::uint64_t length_bytes, Write write);
  void add_text(catalogue_format::SectionKind kind, std::size_t field,
                std::string& text);
  /// Unsigned numbers in 4 or 8 bytes each.
  void add_ends(catalogue_format::SectionKind kind, std::size_t field,
                std::vector<std::uint64_t>& ends);
  void add_names();
  void add_column(std::size_t field);
  void add_pieces();
  void add_int64(std::size_t field, std::vector<std::uint64_t>& words);
  void add_float64(std::size_t field, std::vector<std::uint64_t>& words);
  catalogue_format::Header header(std::uint64_t file_bytes) const;

  CatalogueWriter& writer_;
  std::vector<Section> sections_;
};

}  // namespace leat
