#include "leat/dataset/pieces.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "leat/base/hash.h"
#include "leat/dataset/catalogue_format.h"
#include "leat/dataset/catalogue_writer.h"
#include "leat/dataset/derive.h"

namespace leat {
namespace {

using catalogue_format::Header;
using catalogue_format::SectionEntry;
using Firsts = std::vector<std::uint64_t>;

constexpr std::uint64_t kSampleBytes = 1 << 20;

/// Shards of `samples` samples of 1 MiB, each in two fields; the first sample
/// of all may have no bytes.
Buffer make_file(std::uint32_t shards, std::uint64_t samples,
                 bool first_has_bytes = true) {
  CatalogueWriter writer(Layout::kShards, EtagKind::kNone);
  const std::size_t head = writer.add_field({"head", FieldKind::kBytes});
  const std::size_t rest = writer.add_field({"rest", FieldKind::kBytes});
  if (!first_has_bytes) writer.add_sample("none");
  for (std::uint32_t shard = 0; shard < shards; ++shard) {
    const std::string name = std::to_string(shard);
    const ObjectIndex object =
        writer.add_object({.key = name, .size_bytes = samples * kSampleBytes});
    for (std::uint64_t i = 0; i < samples; ++i) {
      writer.add_sample(name + "-" + std::to_string(i));
      writer.set_range(head, {object, i * kSampleBytes, 1000});
      writer.set_range(rest,
                       {object, i * kSampleBytes + 1000, kSampleBytes - 1000});
    }
  }
  return *std::move(writer).finish();
}

Catalogue opened(Buffer file) { return *Catalogue::open(std::move(file)); }

/// The pieces as they are found without the file's word.
Firsts cut_anew(const Catalogue& catalogue) {
  return cut_into_pieces(
      catalogue.samples(),
      [&](std::uint64_t id) {
        SampleSpan span;
        span.add(catalogue.range(0, SampleId{id}));
        span.add(catalogue.range(1, SampleId{id}));
        return span;
      },
      kUsualPieceBytes);
}

void mend_header(std::span<std::byte> file) {
  Header header;
  std::memcpy(&header, file.data(), sizeof(header));
  header.file_bytes = file.size();
  std::memcpy(file.data(), &header, sizeof(header));
  header.crc = crc32c(
      file.subspan(sizeof(Header), header.sections * sizeof(SectionEntry)),
      crc32c(file.first(catalogue_format::kHeaderCrcOffset)));
  std::memcpy(file.data(), &header, sizeof(header));
}

/// The row of the last section, which is that of the pieces.
std::byte* last_row(std::span<std::byte> file) {
  Header header;
  std::memcpy(&header, file.data(), sizeof(header));
  return file.data() + sizeof(Header) +
         (header.sections - 1) * sizeof(SectionEntry);
}

/// The same file as version 1 has it: without its last section.
Buffer of_version_1(std::span<const std::byte> file) {
  std::vector<std::byte> bytes(file.begin(), file.end());
  Header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  SectionEntry pieces;
  std::memcpy(&pieces, last_row(bytes), sizeof(pieces));
  bytes.resize(pieces.offset);
  header.version = 1;
  --header.sections;
  std::memcpy(bytes.data(), &header, sizeof(header));
  for (std::uint32_t i = 0; i < header.sections; ++i) {
    std::byte* const row = bytes.data() + sizeof(Header) + i * sizeof(pieces);
    SectionEntry entry;
    std::memcpy(&entry, row, sizeof(entry));
    entry.offset -= sizeof(SectionEntry);
    std::memcpy(row, &entry, sizeof(entry));
  }
  const auto after =
      bytes.begin() + sizeof(Header) + header.sections * sizeof(SectionEntry);
  bytes.erase(after, after + sizeof(SectionEntry));
  mend_header(bytes);
  Buffer made(bytes.size());
  std::memcpy(made.data(), bytes.data(), bytes.size());
  return made;
}

TEST(PiecesTest, AFileSaysWhereItsShardsAreCut) {
  const Catalogue catalogue = opened(make_file(2, 20));

  EXPECT_EQ(catalogue.pieces(), (Firsts{0, 10, 20, 30, 40}));
  EXPECT_EQ(catalogue.pieces(), cut_anew(catalogue));
  // Pieces of another length are cut when they are asked for.
  EXPECT_EQ(pieces_of(catalogue, 20 << 20), (Firsts{0, 20, 40}));
}

TEST(PiecesTest, AFileOfTheFirstVersionIsCutWhenItIsAskedFor) {
  const Buffer file = make_file(3, 17);
  const Catalogue catalogue = opened(of_version_1(file.span()));

  EXPECT_TRUE(catalogue.pieces().empty());
  EXPECT_EQ(pieces_of(catalogue, kUsualPieceBytes), cut_anew(catalogue));
}

TEST(PiecesTest, DatasetsThatDifferInTheirPiecesAloneAreOne) {
  const Buffer file = make_file(3, 17);
  const Catalogue catalogue = opened(make_file(3, 17));

  EXPECT_EQ(opened(of_version_1(file.span())).digest(), catalogue.digest());
}

TEST(PiecesTest, ObjectsThatAreSamplesHaveNone) {
  CatalogueWriter writer(Layout::kObjects, EtagKind::kNone);
  writer.add_object({.key = "a", .size_bytes = 1});
  writer.add_sample("a");

  EXPECT_TRUE(opened(*std::move(writer).finish()).pieces().empty());
}

TEST(PiecesTest, PiecesThatDoNotCoverTheSamplesAreRefused) {
  struct Case {
    std::uint64_t entry;
    std::uint64_t value;
  };
  for (const auto& [entry, value] :
       {Case{0, 1}, Case{1, 30}, Case{3, 41}, Case{4, 39}, Case{4, 41}}) {
    Buffer file = make_file(2, 20);
    SectionEntry pieces;
    std::memcpy(&pieces, last_row(file.span()), sizeof(pieces));
    std::memcpy(file.data() + pieces.offset + entry * 8, &value, 8);
    pieces.crc = crc32c(file.span().subspan(pieces.offset, pieces.length));
    std::memcpy(last_row(file.span()), &pieces, sizeof(pieces));
    mend_header(file.span());

    const Result<Catalogue> result = Catalogue::open(std::move(file));

    ASSERT_FALSE(result) << entry << " " << value;
    EXPECT_EQ(result.error().code(), ErrorCode::kCorrupt);
    EXPECT_NE(result.error().message().find("pieces"), std::string::npos);
  }
}

// Other ranks would have another order without a word.
TEST(PiecesTest, DamageIsFoundThoughOnlyTheStructureIsChecked) {
  auto file = std::make_shared<Buffer>(make_file(2, 20));
  SectionEntry pieces;
  std::memcpy(&pieces, last_row(file->span()), sizeof(pieces));
  file->data()[pieces.offset + 8] ^= std::byte{1};

  EXPECT_FALSE(
      Catalogue::open(file->span(), file, CatalogueChecks::kStructure));
}

TEST(PiecesTest, JoinedCataloguesHaveThoseOfTheirParts) {
  const auto part = [](bool first_has_bytes) {
    return std::make_shared<const Catalogue>(
        opened(make_file(2, 20, first_has_bytes)));
  };
  for (const bool has_bytes : {true, false}) {
    const std::vector<std::shared_ptr<const Catalogue>> parts = {
        part(true), part(has_bytes), part(true)};
    const Catalogue joined = *join_catalogues(parts);

    // A sample without bytes goes with the one before it, in another part.
    EXPECT_EQ(joined.pieces().empty(), !has_bytes);
    EXPECT_EQ(pieces_of(joined, kUsualPieceBytes), cut_anew(joined));
  }
}

}  // namespace
}  // namespace leat
