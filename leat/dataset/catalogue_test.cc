#include "leat/dataset/catalogue.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/dataset/catalogue_writer.h"
#include "leat/dataset/derive.h"

namespace leat {
namespace {

Result<Catalogue> open(Buffer file) { return Catalogue::open(std::move(file)); }

Catalogue must_open(CatalogueWriter writer) {
  Result<Buffer> file = std::move(writer).finish();
  EXPECT_TRUE(file) << file.error().message();
  Result<Catalogue> catalogue = open(*std::move(file));
  EXPECT_TRUE(catalogue) << catalogue.error().message();
  return *std::move(catalogue);
}

/// Two folders of one object each.
CatalogueWriter cats_and_dogs(EtagKind etag_kind = EtagKind::kHttp,
                              std::string_view etag = "\"1\"") {
  CatalogueWriter writer(Layout::kObjects, etag_kind);
  writer.set_classes({"cat", "dog"});
  const std::size_t data = writer.add_field({"data", FieldKind::kBytes});
  const std::size_t label = writer.add_field({"label", FieldKind::kInt64});
  std::int64_t number = 0;
  for (const std::string key : {"cat/a.jpg", "dog/b.jpg"}) {
    const ObjectIndex object =
        writer.add_object({.key = key, .etag = etag, .size_bytes = 100});
    writer.add_sample(key);
    writer.set_range(data, {object, 0, 100});
    writer.set_int64(label, number++);
  }
  return writer;
}

Buffer file_of(CatalogueWriter writer) { return *std::move(writer).finish(); }

Buffer copy_of(const Buffer& from) {
  Buffer copy(from.size());
  std::memcpy(copy.data(), from.data(), from.size());
  return copy;
}

TEST(CatalogueTest, GivesBackWhatWasWritten) {
  const Catalogue catalogue = must_open(cats_and_dogs());

  EXPECT_EQ(catalogue.samples(), 2u);
  EXPECT_EQ(catalogue.objects(), 2u);
  EXPECT_EQ(catalogue.layout(), Layout::kObjects);
  EXPECT_EQ(catalogue.etag_kind(), EtagKind::kHttp);
  EXPECT_EQ(catalogue.classes(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(catalogue.field_index("label"), 1u);
  EXPECT_EQ(catalogue.field_index("nothing"), 2u);
  EXPECT_EQ(catalogue.key({1}), "dog/b.jpg");
  EXPECT_EQ(catalogue.range(0, {1}), (ByteRange{{1}, 0, 100}));
  EXPECT_EQ(catalogue.int64(1, {1}), 1);
  EXPECT_EQ(catalogue.object({0}).key, "cat/a.jpg");
  EXPECT_EQ(catalogue.object({0}).etag, "\"1\"");
  EXPECT_EQ(catalogue.object({0}).size_bytes, 100u);
  EXPECT_EQ(catalogue.total_bytes(), 200u);
}

TEST(CatalogueTest, WholeColumnsMakeTheSameFile) {
  CatalogueWriter writer(Layout::kObjects, EtagKind::kHttp);
  writer.set_classes({"cat", "dog"});
  const std::size_t data = writer.add_field({"data", FieldKind::kBytes});
  const std::size_t label = writer.add_field({"label", FieldKind::kInt64});
  TextPool keys;
  TextPool etags;
  for (const char* const key : {"cat/a.jpg", "dog/b.jpg"}) {
    keys.add(key);
    etags.add("\"1\"");
  }
  writer.take_objects(std::move(keys), {100, 100}, std::move(etags));
  writer.take_samples_named_as_objects();
  writer.take_ranges(data, [](std::uint64_t sample) {
    return ByteRange{{static_cast<std::uint32_t>(sample)}, 0, 100};
  });
  writer.take_numbers(label, {0, 1});

  const Buffer file = file_of(std::move(writer));
  const Buffer expected = file_of(cats_and_dogs());
  EXPECT_EQ(as_text(file.span()), as_text(expected.span()));
}

TEST(CatalogueTest, WholeColumnsAreCheckedToo) {
  CatalogueWriter writer(Layout::kShards, EtagKind::kNone);
  const std::size_t data = writer.add_field({"data", FieldKind::kBytes});
  const std::size_t text = writer.add_field({"text", FieldKind::kString});
  TextPool keys;
  keys.add("shard");
  writer.take_objects(std::move(keys), {100}, {});
  TextPool names;
  TextPool texts;
  for (const char* const name : {"a", "b"}) {
    names.add(name);
    texts.add(name);
  }
  writer.take_samples(2, std::move(names));
  writer.take_strings(text, std::move(texts));
  writer.take_ranges(data, [](std::uint64_t sample) {
    return ByteRange{{0}, 50 * sample, 51};
  });

  const Result<Buffer> file = std::move(writer).finish();

  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().message(),
            "making a catalogue: sample 1: bytes [50, +51) lie outside their "
            "object");
}

TEST(CatalogueTest, HoldsNoSampleAtAll) {
  const Catalogue catalogue =
      must_open(CatalogueWriter(Layout::kShards, EtagKind::kNone));

  EXPECT_EQ(catalogue.samples(), 0u);
  EXPECT_EQ(catalogue.total_bytes(), 0u);
}

TEST(CatalogueTest, DigestLeavesEtagsOut) {
  const Catalogue on_s3 = must_open(cats_and_dogs(EtagKind::kHttp, "\"1\""));
  const Catalogue on_disk = must_open(cats_and_dogs(EtagKind::kFile, "17-4"));
  const Catalogue untagged = must_open(cats_and_dogs(EtagKind::kNone, ""));

  EXPECT_EQ(on_s3.digest(), on_disk.digest());
  EXPECT_EQ(on_s3.digest(), untagged.digest());
}

TEST(CatalogueTest, DigestChangesWithEverythingElse) {
  const Hash128 original = must_open(cats_and_dogs()).digest();

  CatalogueWriter other_classes = cats_and_dogs();
  other_classes.set_classes({"cat", "fox"});
  CatalogueWriter other_label = cats_and_dogs();
  other_label.set_int64(1, 0);
  CatalogueWriter other_range = cats_and_dogs();
  other_range.set_range(0, {{1}, 0, 99});
  CatalogueWriter another_sample = cats_and_dogs();
  another_sample.add_sample("dog/c.jpg");
  CatalogueWriter another_object = cats_and_dogs();
  another_object.add_object({.key = "dog/c.jpg"});

  EXPECT_NE(must_open(std::move(other_classes)).digest(), original);
  EXPECT_NE(must_open(std::move(other_label)).digest(), original);
  EXPECT_NE(must_open(std::move(other_range)).digest(), original);
  EXPECT_NE(must_open(std::move(another_sample)).digest(), original);
  EXPECT_NE(must_open(std::move(another_object)).digest(), original);
}

TEST(CatalogueTest, KeepsToItsBudgetPerSample) {
  constexpr std::uint64_t kSamples = 1000;
  CatalogueWriter writer(Layout::kShards, EtagKind::kNone);
  const std::size_t data = writer.add_field({"jpg", FieldKind::kBytes});
  const std::size_t label = writer.add_field({"label", FieldKind::kInt64});
  const ObjectIndex shard =
      writer.add_object({.key = "0.tar", .size_bytes = 1 << 30});
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    writer.add_sample(std::to_string(1000 + i));
    writer.set_range(data, {shard, i * 1024 + 512, 512});
    writer.set_int64(label, static_cast<std::int64_t>(i));
  }

  const Buffer file = file_of(std::move(writer));

  // A key of four characters, its end in four bytes, a label in two, a range.
  EXPECT_LT(file.size(), kSamples * (4 + 4 + 2 + 16) + 1024);
}

TEST(CatalogueTest, KeepsExtremeNumbers) {
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  CatalogueWriter writer(Layout::kShards, EtagKind::kNone);
  const std::size_t wide = writer.add_field({"wide", FieldKind::kInt64});
  const std::size_t narrow = writer.add_field({"narrow", FieldKind::kInt64});
  const std::size_t third = writer.add_field({"third", FieldKind::kFloat64});
  const std::size_t half = writer.add_field({"half", FieldKind::kFloat64});
  writer.add_sample("a");
  writer.set_int64(wide, kLeast);
  writer.set_int64(narrow, -128);
  writer.set_float64(third, 1.0 / 3);
  writer.set_float64(half, -0.0);

  const Catalogue catalogue = must_open(std::move(writer));

  EXPECT_EQ(catalogue.int64(wide, {0}), kLeast);
  EXPECT_EQ(catalogue.int64(narrow, {0}), -128);
  EXPECT_EQ(catalogue.float64(third, {0}), 1.0 / 3);
  EXPECT_TRUE(std::signbit(catalogue.float64(half, {0})));
}

TEST(CatalogueTest, FillsInAFieldThatCameLate) {
  CatalogueWriter writer(Layout::kShards, EtagKind::kNone);
  writer.add_sample("a");
  const std::size_t data = writer.add_field({"png", FieldKind::kBytes});
  const std::size_t text = writer.add_field({"text", FieldKind::kString});
  writer.add_sample("b");
  writer.set_string(text, "first");
  writer.set_string(text, "second");

  const Catalogue catalogue = must_open(std::move(writer));

  EXPECT_TRUE(catalogue.range(data, {0}).is_missing());
  EXPECT_TRUE(catalogue.range(data, {1}).is_missing());
  EXPECT_EQ(catalogue.string(text, {0}), "");
  EXPECT_EQ(catalogue.string(text, {1}), "second");
}

TEST(CatalogueTest, KeepsTheLargestRange) {
  constexpr std::uint64_t kSize = (std::uint64_t{1} << 48) - 1;
  CatalogueWriter writer(Layout::kShards, EtagKind::kNone);
  const std::size_t data = writer.add_field({"data", FieldKind::kBytes});
  const ObjectIndex object =
      writer.add_object({.key = "huge", .size_bytes = kSize});
  writer.add_sample("whole");
  writer.set_range(data, {object, 0, kSize});
  writer.add_sample("last byte");
  writer.set_range(data, {object, kSize - 1, 1});

  const Catalogue catalogue = must_open(std::move(writer));

  EXPECT_EQ(catalogue.range(data, {0}), (ByteRange{{0}, 0, kSize}));
  EXPECT_EQ(catalogue.range(data, {1}), (ByteRange{{0}, kSize - 1, 1}));
}

TEST(CatalogueTest, RefusesToWriteARangeOutsideItsObject) {
  CatalogueWriter writer = cats_and_dogs();
  writer.set_range(0, {{1}, 50, 51});

  const Result<Buffer> file = std::move(writer).finish();

  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code(), ErrorCode::kInvalidArgument);
}

TEST(CatalogueTest, RefusesToWriteTwoFieldsOfOneName) {
  CatalogueWriter writer = cats_and_dogs();
  writer.add_field({"data", FieldKind::kInt64});

  EXPECT_FALSE(std::move(writer).finish());
}

TEST(CatalogueTest, AnyFlippedBitIsAnError) {
  const Buffer good = file_of(cats_and_dogs());
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      Buffer bad = copy_of(good);
      bad.data()[at] ^= static_cast<std::byte>(1 << bit);

      EXPECT_FALSE(open(std::move(bad))) << "byte " << at << " bit " << bit;
    }
  }
}

TEST(CatalogueTest, AnyCutIsAnError) {
  const Buffer good = file_of(cats_and_dogs());
  for (std::size_t size = 0; size < good.size(); ++size) {
    const Result<Catalogue> cut =
        Catalogue::open(good.span().first(size), nullptr);

    ASSERT_FALSE(cut) << size;
    EXPECT_EQ(cut.error().code(), ErrorCode::kCorrupt) << size;
  }
}

TEST(CatalogueTest, MoreBytesAtTheEndAreAnError) {
  const Buffer good = file_of(cats_and_dogs());
  Buffer longer(good.size() + 1);
  std::memcpy(longer.data(), good.data(), good.size());
  longer.data()[good.size()] = std::byte{0};

  EXPECT_FALSE(open(std::move(longer)));
}

TEST(CatalogueTest, SaysWhichSectionIsDamaged) {
  Buffer file = file_of(cats_and_dogs());
  file.data()[file.size() - 1] ^= std::byte{1};  // The labels come last.

  const Result<Catalogue> damaged = open(std::move(file));

  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().code(), ErrorCode::kCorrupt);
  EXPECT_NE(damaged.error().message().find("int64"), std::string::npos)
      << damaged.error().message();
}

TEST(CatalogueTest, WhateverIsDamagedNothingOutsideIsRead) {
  const Buffer good = file_of(cats_and_dogs());
  std::size_t opened = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    Buffer file(good.size());
    std::memcpy(file.data(), good.data(), good.size());
    file.data()[at] = ~file.data()[at];
    const auto catalogue =
        Catalogue::open(file.span(), nullptr, CatalogueChecks::kStructure);
    if (!catalogue) continue;
    ++opened;
    for (SampleId id; id.value < catalogue->samples(); ++id.value) {
      const std::string_view key = catalogue->key(id);
      EXPECT_GE(as_bytes(key).data(), file.data());
      EXPECT_LE(as_bytes(key).data() + key.size(), file.data() + file.size());
      const ByteRange range = catalogue->range(0, id);
      EXPECT_TRUE(range.is_missing() ||
                  range.object.value < catalogue->objects());
    }
  }
  EXPECT_GT(opened, 50u);  // Damage in the texts and values.
}

TEST(CatalogueTest, AddsUpItsBytesLaterWhereItMust) {
  const Buffer file = file_of(cats_and_dogs());

  const auto checked = Catalogue::open(file.span(), nullptr);
  const auto quick =
      Catalogue::open(file.span(), nullptr, CatalogueChecks::kStructure);

  ASSERT_TRUE(quick);
  EXPECT_EQ(quick->total_bytes(), checked->total_bytes());
  EXPECT_EQ(quick->digest(), checked->digest());
}

TEST(CatalogueTest, IsReadFromAnyAddress) {
  const Buffer file = file_of(cats_and_dogs());
  Buffer shifted(file.size() + 1);
  std::memcpy(shifted.data() + 1, file.data(), file.size());

  const Result<Catalogue> catalogue =
      Catalogue::open(shifted.span().subspan(1), nullptr);

  ASSERT_TRUE(catalogue);
  EXPECT_EQ(catalogue->range(0, {1}), (ByteRange{{1}, 0, 100}));
}

TEST(CatalogueTest, RefusesOtherFiles) {
  const Result<Catalogue> other =
      Catalogue::open(as_bytes("<html><body>no such page"), nullptr);

  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code(), ErrorCode::kInvalidArgument);
}

TEST(KeyInStoreTest, JoinsWithOneSlash) {
  EXPECT_EQ(key_in_store("a/b", "c.jpg"), "a/b/c.jpg");
  EXPECT_EQ(key_in_store("a/b/", "c.jpg"), "a/b/c.jpg");
  EXPECT_EQ(key_in_store("", "c.jpg"), "c.jpg");
}

TEST(CatalogueTest, KeepsChecksumsWhichTheDigestLeavesOut) {
  const auto plain =
      std::make_shared<const Catalogue>(must_open(cats_and_dogs()));
  EXPECT_FALSE(plain->has_checksums());
  EXPECT_EQ(plain->checksum(0, {1}), std::nullopt);

  const auto checked = std::make_shared<const Catalogue>(
      *open(*with_checksums(*plain, [](std::size_t field, SampleId sample) {
        EXPECT_EQ(field, 0u);
        return sample.value == 0 ? 0 : 0xfedcba98;
      })));

  EXPECT_TRUE(checked->has_checksums());
  EXPECT_EQ(checked->checksum(0, {0}), std::nullopt) << "0 says that none is";
  EXPECT_EQ(checked->checksum(0, {1}), 0xfedcba98);
  EXPECT_EQ(checked->digest(), plain->digest());
  EXPECT_EQ(checked->key({1}), "dog/b.jpg");
  EXPECT_EQ(checked->int64(1, {1}), 1);

  const Catalogue chosen =
      *open(*select_samples(*checked, std::vector<SampleId>{{1}, {0}}));
  EXPECT_EQ(chosen.checksum(0, {0}), 0xfedcba98);
  EXPECT_EQ(chosen.checksum(0, {1}), std::nullopt);
  const std::vector<std::shared_ptr<const Catalogue>> parts = {plain, checked};
  const Catalogue joined = *join_catalogues(parts);
  EXPECT_TRUE(joined.has_checksums());
  EXPECT_EQ(joined.checksum(0, {1}), std::nullopt);
  EXPECT_EQ(joined.checksum(0, {3}), 0xfedcba98);
}

}  // namespace
}  // namespace leat
