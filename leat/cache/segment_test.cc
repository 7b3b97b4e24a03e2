#include "leat/cache/segment.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/units.h"
#include "leat/cache/sealed_memory.h"
#include "leat/cache/testing/faulty_file_ops.h"

namespace leat {
namespace {

using testing::FaultyFileOps;
using testing::FileCall;

RecordKey key_of(std::uint64_t n) { return {.high = n, .low = ~n}; }

RecordEntry an_entry(const SegmentHeader& header) {
  return {.key = key_of(7),
          .source = 3,
          .offset = header.data_begin(),
          .length_bytes = 100,
          .body_crc = 5};
}

class SegmentTest : public ::testing::Test {
 protected:
  Segment make(std::uint32_t entry_count = 64) {
    const SegmentHeader header{.id = 1, .owner = 2, .entry_count = entry_count};
    return *Segment::open(*files_->create(header), ops_);
  }
  void flip(Segment& segment, std::uint64_t at) {
    std::byte byte;
    ASSERT_EQ(read_all(ops_, segment.fd(), {&byte, 1}, at), 0);
    byte ^= std::byte{0x10};
    ASSERT_EQ(write_all(ops_, segment.fd(), {&byte, 1}, at), 0);
  }
  static std::vector<RecordEntry> entries_of(const Segment& segment) {
    std::vector<RecordEntry> entries;
    EXPECT_TRUE(
        segment.scan([&](const RecordEntry& e) { entries.push_back(e); }));
    return entries;
  }

  FaultyFileOps ops_;
  std::unique_ptr<SegmentFiles> files_ = open_segment_memory(ops_);
};

TEST(SegmentFormatTest, HeadersAndEntriesComeBackAsTheyWere) {
  const SegmentHeader header{.id = 9, .owner = 8, .entry_count = 100};
  const RecordEntry entry = an_entry(header);

  RecordEntry parsed;
  EXPECT_EQ(parse_header(encode(header)), header);
  EXPECT_EQ(parse_entry(encode(entry), header, parsed), EntryState::kGood);
  EXPECT_EQ(parsed, entry);
}

TEST(SegmentFormatTest, AnyFlippedBitIsSeen) {
  const SegmentHeader header{.id = 9, .owner = 8, .entry_count = 100};
  const SegmentBlock good_header = encode(header);
  const SegmentBlock good_entry = encode(an_entry(header));
  RecordEntry parsed;

  for (std::size_t bit = 0; bit < 8 * kEntryBytes; ++bit) {
    const std::byte mask{static_cast<unsigned char>(1U << (bit % 8))};
    SegmentBlock bad = good_header;
    bad[bit / 8] ^= mask;
    EXPECT_EQ(parse_header(bad), std::nullopt) << bit;
    bad = good_entry;
    bad[bit / 8] ^= mask;
    EXPECT_EQ(parse_entry(bad, header, parsed), EntryState::kBad) << bit;
  }
}

TEST(SegmentFormatTest, WhatLiesOutsideAllBoundsIsBad) {
  const SegmentHeader header{.id = 9, .owner = 8, .entry_count = 100};
  RecordEntry parsed;
  const auto state_with = [&](auto change) {
    RecordEntry entry = an_entry(header);
    change(entry);
    return parse_entry(encode(entry), header, parsed);
  };

  EXPECT_EQ(state_with([](auto& e) { e.length_bytes = 0; }), EntryState::kBad);
  EXPECT_EQ(state_with([](auto& e) { e.length_bytes = kMostRecordBytes + 1; }),
            EntryState::kBad);
  EXPECT_EQ(state_with([](auto& e) { e.offset = kPageBytes; }),
            EntryState::kBad);
  EXPECT_EQ(state_with([](auto& e) { e.offset += 1; }), EntryState::kBad);
  EXPECT_EQ(state_with([](auto& e) { e.offset = kMostOffset + kPageBytes; }),
            EntryState::kBad);
  EXPECT_EQ(parse_entry(SegmentBlock{}, header, parsed), EntryState::kEmpty);
  EXPECT_EQ(parse_header(encode(SegmentHeader{.id = 1, .owner = 1})),
            std::nullopt);
  EXPECT_EQ(parse_header(encode(SegmentHeader{
                .id = 1, .owner = 1, .entry_count = kMostEntries + 1})),
            std::nullopt);
}

TEST_F(SegmentTest, FollowsWhatIsAppendedAndDropped) {
  Segment writer = make();
  const auto first = writer.append(key_of(1), 3, as_bytes("first"));
  ASSERT_TRUE(first);
  ASSERT_TRUE(writer.append(key_of(2), 3, as_bytes("second")));
  ASSERT_TRUE(writer.drop(*first));

  const std::vector<RecordEntry> entries = entries_of(writer);

  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0], *first);
  EXPECT_EQ(entries[1].key, key_of(2));
  EXPECT_EQ(entries[2].kind, RecordEntry::Kind::kDrop);
  std::string body(6, ' ');
  ASSERT_EQ(
      writer.read(entries[1].offset, std::as_writable_bytes(std::span(body))),
      0);
  EXPECT_EQ(body, "second");
  EXPECT_EQ(record_crc(key_of(2), as_bytes(body)), entries[1].body_crc);
  EXPECT_NE(record_crc(key_of(1), as_bytes(body)), entries[1].body_crc);
}

TEST_F(SegmentTest, APunchedRecordTakesNoRoom) {
  Segment writer = make();
  const std::string big(1 << 20, 'x');
  const auto record = writer.append(key_of(1), 0, as_bytes(big));
  ASSERT_TRUE(record);
  const std::uint64_t before = writer.allocated_bytes();

  ASSERT_TRUE(writer.drop(*record));

  EXPECT_LE(writer.allocated_bytes() + big.size(), before);
}

TEST_F(SegmentTest, ABadEntryIsPassedOverOnceOthersFollow) {
  Segment writer = make();
  for (std::uint64_t n = 0; n < 3; ++n) {
    ASSERT_TRUE(writer.append(key_of(n), 0, as_bytes("body")));
  }
  flip(writer, kPageBytes + kEntryBytes + 20);      // The second of three
  flip(writer, kPageBytes + 2 * kEntryBytes + 20);  // and the last one.

  EXPECT_EQ(entries_of(writer).size(), 1u);
  flip(writer, kPageBytes + 2 * kEntryBytes + 20);  // As if it were whole now.
  EXPECT_EQ(entries_of(writer).size(), 2u);
}

TEST_F(SegmentTest, AFailedAppendLeavesNothingAndMayBeTriedAgain) {
  Segment writer = make();
  int writes = 0;
  for (const int nth : {0, 1}) {  // The body, then the entry.
    writes = 0;
    ops_.set_script([&](FileCall call) {
      return call == FileCall::kPwrite && writes++ == nth ? -ENOSPC : 0;
    });
    const auto failed = writer.append(key_of(1), 0, as_bytes("body"));
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code(), ErrorCode::kResourceExhausted);
    EXPECT_TRUE(entries_of(writer).empty());
  }
  ops_.heal();

  ASSERT_TRUE(writer.append(key_of(1), 0, as_bytes("body")));

  EXPECT_EQ(entries_of(writer).size(), 1u);
}

TEST_F(SegmentTest, KeepsAnEntryForTheDropOfEachRecord) {
  Segment writer = make(/*entry_count=*/6);
  std::vector<RecordEntry> records;
  while (writer.has_room(4, kPageBytes * 100)) {
    const auto record =
        writer.append(key_of(records.size()), 0, as_bytes("body"));
    ASSERT_TRUE(record);
    records.push_back(*record);
  }

  EXPECT_EQ(records.size(), 3u);
  for (const RecordEntry& record : records) {
    ASSERT_TRUE(writer.drop(record));
  }
  EXPECT_EQ(entries_of(writer).size(), 6u);
  EXPECT_FALSE(writer.has_room(4, kPageBytes * 100));
}

// --- mapped ------------------------------------------------------------------

/// Memory that is sealed as told, and no more.
class SealedAsTold final : public SegmentFiles {
 public:
  SealedAsTold(int seals, FileOps& ops) : seals_(seals), ops_(ops) {}
  Result<Opened> create(const SegmentHeader& header) override {
    Opened made{.fd = OwnedFd(::memfd_create("test", MFD_ALLOW_SEALING)),
                .is_writable = true};
    EXPECT_EQ(write_all(ops_, made.fd.get(), encode(header), 0), 0);
    EXPECT_EQ(::fcntl(made.fd.get(), F_ADD_SEALS, seals_), 0);
    return made;
  }
  Result<std::vector<std::uint64_t>> list() override { return {{}}; }
  Result<Opened> open(std::uint64_t /*id*/) override {
    return file_error(-ENOENT, "opening");
  }
  void remove(std::uint64_t /*id*/) override {}
  bool is_removed(int /*fd*/) const override { return false; }
  std::string where() const override { return "memory"; }

 private:
  const int seals_;
  FileOps& ops_;
};

class MappedSegmentTest : public SegmentTest {
 protected:
  static constexpr std::uint64_t kLength = 3 * kPageBytes - 5;

  RecordEntry append(Segment& segment, std::uint64_t n) {
    const std::string body(kLength, static_cast<char>('a' + n % 26));
    return *segment.append(key_of(n), 0, as_bytes(body));
  }
  /// 0, or why it is a miss; a hit is always the right bytes.
  int read(const Segment& segment, std::uint64_t n, const RecordEntry& entry) {
    std::string got(kLength, ' ');
    const int error = segment.read_body(key_of(n), entry.offset, entry.body_crc,
                                        std::as_writable_bytes(std::span(got)));
    if (error == 0) {
      EXPECT_EQ(got, std::string(kLength, static_cast<char>('a' + n % 26)));
    }
    return error;
  }
  std::uint64_t preads_of(const std::function<void()>& work) {
    std::uint64_t preads = 0;
    ops_.set_script([&](FileCall call) {
      preads += call == FileCall::kPread ? 1 : 0;
      return 0;
    });
    work();
    ops_.heal();
    return preads;
  }
};

TEST_F(MappedSegmentTest, WhatIsWrittenLaterIsReadWhereItLiesToo) {
  Segment segment = make();
  segment.map(4 * 3 * kPageBytes);
  std::vector<RecordEntry> entries;
  for (std::uint64_t n = 0; n < 6; ++n) entries.push_back(append(segment, n));

  const auto preads = preads_of([&] {
    for (std::uint64_t n = 0; n < 6; ++n) {
      EXPECT_EQ(read(segment, n, entries[n]), 0) << n;
    }
  });

  EXPECT_EQ(preads, 2u);  // Those behind what was mapped.
}

TEST_F(MappedSegmentTest, APunchedRecordIsAMissThatTakesNoMemory) {
  Segment segment = make();
  segment.map(kMiB);
  const RecordEntry kept = append(segment, 1);
  const RecordEntry gone = append(segment, 2);
  ASSERT_EQ(read(segment, 2, gone), 0);
  ASSERT_TRUE(segment.drop(gone));
  const std::uint64_t before = segment.allocated_bytes();

  EXPECT_EQ(read(segment, 2, gone), -EBADMSG);

  EXPECT_EQ(segment.allocated_bytes(), before);
  EXPECT_EQ(read(segment, 1, kept), 0);
}

TEST_F(MappedSegmentTest, ARecordBehindTheEndOfItsFileIsAMiss) {
  Segment segment = make();
  segment.map(kMiB);
  RecordEntry entry = append(segment, 1);
  entry.offset += kPageBytes;  // As a hostile index may say.

  EXPECT_EQ(read(segment, 1, entry), -ENODATA);
  entry.offset = std::uint64_t{1} << 62;
  EXPECT_EQ(read(segment, 1, entry), -ENODATA);
}

// Read where it lies, each of these could end the process, or take memory that
// nobody can free.
TEST_F(MappedSegmentTest, WhatIsNotSealedAsOursIsReadByPread) {
  const std::vector<std::pair<int, bool>> cases = {
      {F_SEAL_SHRINK | F_SEAL_SEAL, true},
      {F_SEAL_SEAL, false},
      {F_SEAL_SHRINK, false},
      {F_SEAL_SHRINK | F_SEAL_SEAL | F_SEAL_WRITE, false},
      {F_SEAL_SHRINK | F_SEAL_SEAL | F_SEAL_FUTURE_WRITE, false}};
  for (const auto& [seals, is_mapped] : cases) {
    SealedAsTold files(
        seals & ~(F_SEAL_SEAL | F_SEAL_WRITE | F_SEAL_FUTURE_WRITE), ops_);
    Segment segment = *Segment::open(
        *files.create({.id = 1, .owner = 2, .entry_count = 64}), ops_);
    const RecordEntry entry = append(segment, 3);
    ASSERT_EQ(::fcntl(segment.fd(), F_ADD_SEALS, seals), 0);
    segment.map(kMiB);

    int error = -1;
    const auto preads = preads_of([&] { error = read(segment, 3, entry); });

    EXPECT_EQ(error, 0) << seals;
    EXPECT_EQ(preads, is_mapped ? 0u : 1u) << seals;
  }
}

TEST_F(MappedSegmentTest, MemoryThatShrinksUnderAReaderIsAMiss) {
  SealedAsTold files(0, ops_);
  Segment segment = *Segment::open(
      *files.create({.id = 1, .owner = 2, .entry_count = 64}), ops_);
  segment.map(kMiB);
  const RecordEntry entry = append(segment, 3);
  ASSERT_EQ(read(segment, 3, entry), 0);
  ASSERT_EQ(::ftruncate(segment.fd(), 0), 0);

  EXPECT_EQ(read(segment, 3, entry), -ENODATA);  // And no SIGBUS.
}

TEST_F(MappedSegmentTest, OurMemoryCannotBeCutOff) {
  const Segment segment = make();

  EXPECT_EQ(::ftruncate(segment.fd(), 0), -1);
  EXPECT_EQ(errno, EPERM);
}

TEST(SealedMemoryTest, HolesAreNotFilledWhereMemoryIsStrictlyAccounted) {
  EXPECT_TRUE(fills_every_hole("0\n"));
  EXPECT_TRUE(fills_every_hole("1\n"));
  EXPECT_FALSE(fills_every_hole("2\n"));
  EXPECT_FALSE(fills_every_hole(""));
}

}  // namespace
}  // namespace leat
