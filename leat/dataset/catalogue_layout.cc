#include "leat/dataset/catalogue_layout.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "leat/dataset/pieces.h"

namespace leat {

using catalogue_format::Header;
using catalogue_format::kHeaderCrcOffset;
using catalogue_format::kRangeBytes;
using catalogue_format::SampleKeys;
using catalogue_format::SectionEntry;
using catalogue_format::SectionKind;

namespace {

constexpr std::uint64_t kMost32 = std::numeric_limits<std::uint32_t>::max();

template <class T>
void append(std::string& to, T value) {
  std::array<char, sizeof(T)> bytes;
  std::memcpy(bytes.data(), &value, sizeof(T));
  to.append(bytes.data(), bytes.size());
}

void append_text(std::string& to, std::string_view text) {
  append(to, static_cast<std::uint32_t>(text.size()));
  to.append(text);
}

void copy(std::string_view from, std::span<std::byte> into) {
  if (!from.empty()) std::memcpy(into.data(), from.data(), from.size());
}

/// Frees the memory of what has been written.
template <class Collected>
void release(Collected& written) {
  Collected().swap(written);
}

/// Writes each word as a `T`, through `convert`, and frees them.
template <class T, class Convert>
void write_as(std::vector<std::uint64_t>& words, std::span<std::byte> into,
              Convert convert) {
  std::byte* at = into.data();
  for (const std::uint64_t word : words) {
    const T value = convert(word);
    std::memcpy(at, &value, sizeof(T));
    at += sizeof(T);
  }
  release(words);
}

/// The bytes that hold every one of these signed numbers.
std::uint32_t width_of(const std::vector<std::uint64_t>& words) {
  std::int64_t least = 0;
  std::int64_t most = 0;
  for (const std::uint64_t word : words) {
    const auto value = std::bit_cast<std::int64_t>(word);
    least = std::min(least, value);
    most = std::max(most, value);
  }
  const auto fits = [&]<class T>(T) {
    return least >= std::numeric_limits<T>::min() &&
           most <= std::numeric_limits<T>::max();
  };
  if (fits(std::int8_t{})) return 1;
  if (fits(std::int16_t{})) return 2;
  return fits(std::int32_t{}) ? 4 : 8;
}

/// True if a float holds the same value, to the bit.
bool fits_float(std::uint64_t word) {
  const auto narrow = static_cast<float>(std::bit_cast<double>(word));
  return std::bit_cast<std::uint64_t>(static_cast<double>(narrow)) == word;
}

/// The same data has different ETags in another store, and may be listed with
/// or without checksums. Its pieces follow from its ranges.
bool identifies_data(SectionKind kind) {
  return kind != SectionKind::kEtagEnds && kind != SectionKind::kEtagText &&
         kind != SectionKind::kChecksums && kind != SectionKind::kPieces;
}

float to_float(std::uint64_t word) {
  return static_cast<float>(std::bit_cast<double>(word));
}

}  // namespace

CatalogueLayout::CatalogueLayout(CatalogueWriter& writer) : writer_(writer) {
  add_names();
  std::vector<std::uint64_t>& sizes = writer.object_sizes_;
  add(SectionKind::kObjectSizes, 0, 8, sizes.size() * 8,
      [&](std::span<std::byte> into) {
        write_as<std::uint64_t>(sizes, into, [](auto word) { return word; });
      });
  add_ends(SectionKind::kObjectKeyEnds, 0, writer.object_keys_.ends);
  add_text(SectionKind::kObjectKeyText, 0, writer.object_keys_.text);
  if (writer.etag_kind_ != EtagKind::kNone) {
    add_ends(SectionKind::kEtagEnds, 0, writer.etags_.ends);
    add_text(SectionKind::kEtagText, 0, writer.etags_.text);
  }
  if (writer.own_keys_) {
    add_ends(SectionKind::kSampleKeyEnds, 0, writer.own_keys_->ends);
    add_text(SectionKind::kSampleKeyText, 0, writer.own_keys_->text);
  }
  for (std::size_t i = 0; i < writer.fields_.size(); ++i) add_column(i);
  if (writer.layout_ == Layout::kShards) add_pieces();

  std::uint64_t offset =
      sizeof(Header) + sections_.size() * sizeof(SectionEntry);
  for (Section& section : sections_) {
    section.entry.offset = offset;
    offset += section.entry.length;
  }
}

void CatalogueLayout::add(SectionKind kind, std::size_t field,
                          std::uint32_t width, std::uint64_t length_bytes,
                          Write write) {
  SectionEntry entry{};
  entry.kind = static_cast<std::uint32_t>(kind);
  entry.field = static_cast<std::uint32_t>(field);
  entry.length = length_bytes;
  entry.width = width;
  sections_.push_back({entry, std::move(write)});
}

void CatalogueLayout::add_text(SectionKind kind, std::size_t field,
                               std::string& text) {
  add(kind, field, 0, text.size(), [&text](std::span<std::byte> into) {
    copy(text, into);
    release(text);
  });
}

void CatalogueLayout::add_ends(SectionKind kind, std::size_t field,
                               std::vector<std::uint64_t>& ends) {
  if (ends.empty() || ends.back() <= kMost32) {
    return add(kind, field, 4, ends.size() * 4, [&](std::span<std::byte> into) {
      write_as<std::uint32_t>(ends, into, [](auto word) {
        return static_cast<std::uint32_t>(word);
      });
    });
  }
  add(kind, field, 8, ends.size() * 8, [&](std::span<std::byte> into) {
    write_as<std::uint64_t>(ends, into, [](auto word) { return word; });
  });
}

void CatalogueLayout::add_names() {
  std::string fields;
  for (const FieldSpec& field : writer_.fields_) {
    append(fields, static_cast<std::uint8_t>(field.kind));
    append_text(fields, field.name);
  }
  add(SectionKind::kFields, 0, 0, fields.size(),
      [fields](std::span<std::byte> into) { copy(fields, into); });
  std::string classes;
  for (const std::string& name : writer_.classes_) append_text(classes, name);
  add(SectionKind::kClasses, 0, 0, classes.size(),
      [classes](std::span<std::byte> into) { copy(classes, into); });
}

void CatalogueLayout::add_column(std::size_t field) {
  CatalogueWriter::Column& column = writer_.columns_[field];
  switch (writer_.fields_[field].kind) {
    case FieldKind::kBytes:
      add(SectionKind::kRanges, field, kRangeBytes, column.words.size() * 8,
          [&](std::span<std::byte> into) {
            write_as<std::uint64_t>(column.words, into,
                                    [](auto word) { return word; });
          });
      if (!writer_.has_checksums_) return;
      return add(SectionKind::kChecksums, field, 4, column.checksums.size() * 4,
                 [&](std::span<std::byte> into) {
                   copy(as_text(std::as_bytes(std::span(column.checksums))),
                        into);
                 });
    case FieldKind::kInt64:
      return add_int64(field, column.words);
    case FieldKind::kFloat64:
      return add_float64(field, column.words);
    case FieldKind::kString:
      add_ends(SectionKind::kStringEnds, field, column.words);
      return add_text(SectionKind::kStringText, field, column.text);
  }
}

void CatalogueLayout::add_int64(std::size_t field,
                                std::vector<std::uint64_t>& words) {
  const std::uint32_t width = width_of(words);
  add(SectionKind::kInt64, field, width, words.size() * width,
      [&words, width](std::span<std::byte> into) {
        std::byte* at = into.data();
        for (const std::uint64_t word : words) {
          std::memcpy(at, &word, width);  // Little-endian: the low bytes.
          at += width;
        }
        release(words);
      });
}

void CatalogueLayout::add_float64(std::size_t field,
                                  std::vector<std::uint64_t>& words) {
  const bool narrow = std::ranges::all_of(words, fits_float);
  const std::uint32_t width = narrow ? 4 : 8;
  add(SectionKind::kFloat64, field, width, words.size() * width,
      [&words, narrow](std::span<std::byte> into) {
        if (narrow) return write_as<float>(words, into, to_float);
        write_as<std::uint64_t>(words, into, [](auto word) { return word; });
      });
}

void CatalogueLayout::add_pieces() {
  std::vector<const std::vector<std::uint64_t>*> ranges;
  for (std::size_t field = 0; field < writer_.fields_.size(); ++field) {
    if (writer_.fields_[field].kind != FieldKind::kBytes) continue;
    ranges.push_back(&writer_.columns_[field].words);
  }
  std::vector<std::uint64_t> pieces = cut_into_pieces(
      writer_.samples_,
      [&](std::uint64_t sample) {
        SampleSpan span;
        for (const std::vector<std::uint64_t>* words : ranges) {
          span.add(catalogue_format::unpack(
              {(*words)[2 * sample], (*words)[2 * sample + 1]}));
        }
        return span;
      },
      kUsualPieceBytes);
  const std::uint64_t bytes = pieces.size() * 8;
  add(SectionKind::kPieces, 0, 8, bytes,
      [pieces = std::move(pieces)](std::span<std::byte> into) {
        copy(as_text(std::as_bytes(std::span(pieces))), into);
      });
}

Header CatalogueLayout::header(std::uint64_t file_bytes) const {
  Header header{};
  header.magic = catalogue_format::kMagic;
  header.version = catalogue_format::kVersion;
  header.sections = static_cast<std::uint32_t>(sections_.size());
  header.file_bytes = file_bytes;
  header.samples = writer_.samples_;
  header.objects = writer_.objects();
  header.layout = static_cast<std::uint8_t>(writer_.layout_);
  header.etag_kind = static_cast<std::uint8_t>(writer_.etag_kind_);
  header.sample_keys = static_cast<std::uint8_t>(
      writer_.own_keys_ ? SampleKeys::kOwn : SampleKeys::kOfObjects);
  header.has_checksums = writer_.has_checksums_ ? 1 : 0;
  return header;
}

Buffer CatalogueLayout::write() && {
  const SectionEntry& last = sections_.back().entry;
  Buffer file(last.offset + last.length);
  Header head = header(file.size());
  Hasher128 digest;
  digest.update(head.layout);
  digest.update(head.samples);
  digest.update(head.objects);

  std::size_t row = sizeof(Header);
  for (const Section& section : sections_) {
    SectionEntry entry = section.entry;
    const auto bytes = file.span().subspan(entry.offset, entry.length);
    section.write(bytes);
    entry.crc = crc32c(bytes);
    std::memcpy(file.data() + row, &entry, sizeof(entry));
    row += sizeof(entry);
    if (!identifies_data(static_cast<SectionKind>(entry.kind))) continue;
    digest.update(entry.kind | std::uint64_t{entry.field} << 32);
    digest.update(entry.width);
    digest.update(entry.length);
    digest.update(bytes);
  }
  const Hash128 hash = digest.digest();
  head.digest_high = hash.high;
  head.digest_low = hash.low;
  std::memcpy(file.data(), &head, sizeof(head));
  head.crc = crc32c(file.span().subspan(sizeof(Header), row - sizeof(Header)),
                    crc32c(file.span().first(kHeaderCrcOffset)));
  std::memcpy(file.data(), &head, sizeof(head));
  return file;
}

}  // namespace leat
