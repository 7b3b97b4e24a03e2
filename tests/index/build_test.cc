// From a store to a catalogue and back to the bytes.
#include "leat/index/build.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/codec/testing/tar_builder.h"
#include "leat/dataset/catalogue.h"
#include "leat/store/memory/memory_store.h"
#include "leat/store/testing/faulty_store.h"

namespace leat {
namespace {

using testing::FaultyCall;
using testing::FaultyStore;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TarBuilder;

struct Built {
  Buffer file;
  Catalogue catalogue;
  std::string note;
};

Result<Built> try_build(Store& store, std::string_view prefix,
                        const IndexOptions& options = {}) {
  LEAT_TRY(BuiltCatalogue built, build_catalogue(store, prefix, options, {}));
  LEAT_TRY(Catalogue catalogue, Catalogue::open(built.bytes.span(), nullptr));
  return Built{std::move(built.bytes), std::move(catalogue),
               std::move(built.note)};
}

Built build(Store& store, std::string_view prefix,
            const IndexOptions& options = {}) {
  Result<Built> built = try_build(store, prefix, options);
  if (!built) ADD_FAILURE() << built.error().message();
  return *std::move(built);
}

Error error_of(Store& store, std::string_view prefix,
               const IndexOptions& options = {}) {
  Result<Built> built = try_build(store, prefix, options);
  EXPECT_FALSE(built);
  return built ? Error(ErrorCode::kInternal, "no error")
               : std::move(built).error();
}

std::string text_of(Store& store, std::string_view prefix,
                    const Catalogue& catalogue, const ByteRange& range) {
  std::string text(range.length_bytes, '\0');
  const ObjectView object = catalogue.object(range.object);
  ReadRequest request;
  request.object = {.key = key_in_store(prefix, object.key),
                    .etag = std::string(object.etag)};
  request.offset = range.offset;
  request.into = {reinterpret_cast<std::byte*>(text.data()), text.size()};
  const Result<void> read = read_range(store, request, {});
  EXPECT_TRUE(read) << read.error().message();
  return text;
}

TEST(IndexFolderTest, MakesASampleOfEveryObject) {
  const auto store = open_memory_store({{"p/train/b/2.jpg", "two"},
                                        {"p/train/a/1.jpg", "1"},
                                        {"p/train/a/empty.jpg", ""},
                                        {"p/train/a/", ""},
                                        {"p/train/.leat/catalogue", "x"},
                                        {"p/train2/c/3.jpg", "3"},
                                        {"p/trainer", "4"}});

  const Built built = build(*store, "p/train");
  const Catalogue& catalogue = built.catalogue;

  ASSERT_EQ(catalogue.samples(), 3u);
  EXPECT_EQ(catalogue.layout(), Layout::kObjects);
  EXPECT_EQ(catalogue.classes(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(catalogue.fields(),
            (std::vector<FieldSpec>{{"data", FieldKind::kBytes},
                                    {"label", FieldKind::kInt64}}));
  EXPECT_EQ(catalogue.key({0}), "a/1.jpg");
  EXPECT_EQ(catalogue.range(0, {1}).length_bytes, 0u);
  EXPECT_FALSE(catalogue.range(0, {1}).is_missing());
  EXPECT_EQ(catalogue.int64(1, {2}), 1);
  EXPECT_EQ(text_of(*store, "p/train", catalogue, catalogue.range(0, {2})),
            "two");
}

TEST(IndexFolderTest, HasNoLabelsWithoutFolders) {
  const auto store = open_memory_store({{"1.png", "1"}, {"2.png", "2"}});

  const Built built = build(*store, "");

  EXPECT_EQ(built.catalogue.samples(), 2u);
  EXPECT_EQ(built.catalogue.fields().size(), 1u);
}

TEST(IndexFolderTest, ReadsEveryPage) {
  MemoryObjects objects;
  for (int i = 0; i < 100; ++i) objects[fmt::format("d/{:03}", i)] = "x";
  const auto store =
      open_memory_store(objects, {.most_keys_per_page = 7, .url = "mem://"});
  IndexOptions options;
  std::uint64_t told = 0;
  options.progress = [&](const IndexProgress& now) { told = now.objects; };

  const Built built = build(*store, "d", options);

  EXPECT_EQ(built.catalogue.samples(), 100u);
  EXPECT_EQ(told, 100u);
}

TEST(IndexFolderTest, HasOneDigestWhereverTheDataIs) {
  const auto here =
      open_memory_store({{"a/x", "1"}, {"b/y", "22"}},
                        {.most_keys_per_page = 9, .url = "s3://one/"});
  const auto there =
      open_memory_store({{"deep/er/a/x", "1"}, {"deep/er/b/y", "33"}},
                        {.most_keys_per_page = 1, .url = "/some/folder/"});
  const Built first = build(*here, "");
  const Built second = build(*there, "deep/er");

  EXPECT_EQ(first.catalogue.digest(), second.catalogue.digest());
  EXPECT_EQ(first.catalogue.etag_kind(), EtagKind::kHttp);
  EXPECT_EQ(second.catalogue.etag_kind(), EtagKind::kFile);
  EXPECT_TRUE(etags_apply(first.catalogue, *here));
  EXPECT_FALSE(etags_apply(first.catalogue, *there));
}

TEST(IndexFolderTest, SaysWhenNothingIsThere) {
  const auto store = open_memory_store({{"other", "1"}});

  const Error error = error_of(*store, "p");

  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_THAT(error.message(), HasSubstr("memory://p"));
}

TEST(IndexFolderTest, StopsWhenTold) {
  const auto store = open_memory_store({{"a", "1"}});
  std::stop_source stop;
  stop.request_stop();

  const auto built = build_catalogue(*store, "", {}, stop.get_token());

  ASSERT_FALSE(built);
  EXPECT_EQ(built.error().code(), ErrorCode::kCancelled);
}

/// Shard `n`: two samples, of which the second has no label.
std::string shard(int n) {
  return TarBuilder()
      .add(fmt::format("{}a.jpg", n), fmt::format("image {}a", n))
      .add(fmt::format("{}a.cls", n), fmt::format("{}", n))
      .add(fmt::format("{}b.jpg", n), fmt::format("image {}b", n))
      .finish();
}

MemoryObjects shards(int count) {
  MemoryObjects objects;
  for (int n = 0; n < count; ++n) {
    objects[fmt::format("s/{:05}.tar", n)] = shard(n);
  }
  return objects;
}

TEST(IndexShardsTest, FindsTheBytesOfEveryMember) {
  const auto store = open_memory_store(shards(50));
  IndexOptions options;
  options.threads = 4;

  const Built built = build(*store, "s", options);
  const Catalogue& catalogue = built.catalogue;

  ASSERT_EQ(catalogue.samples(), 100u);
  EXPECT_EQ(catalogue.objects(), 50u);
  EXPECT_EQ(catalogue.layout(), Layout::kShards);
  for (std::uint64_t n = 0; n < 50; ++n) {
    const SampleId first{2 * n};
    EXPECT_EQ(catalogue.key(first), fmt::format("{}a", n));
    EXPECT_EQ(text_of(*store, "s", catalogue, catalogue.range(0, first)),
              fmt::format("image {}a", n));
    EXPECT_EQ(text_of(*store, "s", catalogue, catalogue.range(1, first)),
              fmt::format("{}", n));
    EXPECT_TRUE(catalogue.range(1, {2 * n + 1}).is_missing());
  }
}

TEST(IndexShardsTest, IsTheSameForAnyNumberOfThreads) {
  const auto store = open_memory_store(shards(40));
  IndexOptions one;
  one.threads = 1;
  IndexOptions many;
  many.threads = 64;

  EXPECT_EQ(as_text(build(*store, "s", one).file.span()),
            as_text(build(*store, "s", many).file.span()));
}

TEST(IndexShardsTest, NamesTheFirstShardThatIsCut) {
  MemoryObjects objects = shards(20);
  objects["s/00007.tar"].resize(1000);
  objects["s/00013.tar"].resize(700);
  const auto store = open_memory_store(objects);

  for (int round = 0; round < 5; ++round) {
    const Error error = error_of(*store, "s");

    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    EXPECT_THAT(error.message(), HasSubstr("memory://s/00007.tar"));
    EXPECT_THAT(error.message(), HasSubstr("cut short"));
  }
}

TEST(IndexShardsTest, RefusesMembersThatPointElsewhere) {
  const auto store = open_memory_store(
      {{"s/0.tar", TarBuilder().add("../1.jpg", "x").finish()}});

  const Error error = error_of(*store, "s");

  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_THAT(error.message(), HasSubstr("'../1.jpg'"));
}

TEST(IndexShardsTest, RefusesAnEmptyShard) {
  const auto store = open_memory_store({{"s/0.tar", ""}});

  EXPECT_EQ(error_of(*store, "s").code(), ErrorCode::kCorrupt);
}

TEST(IndexShardsTest, RefusesShardsWithoutSamples) {
  const auto store = open_memory_store(
      {{"s/0.tar", TarBuilder().add("README", "x").finish()}});

  EXPECT_EQ(error_of(*store, "s").code(), ErrorCode::kNotFound);
}

TEST(IndexShardsTest, EndsAtOnceWhenAReadFails) {
  FaultyStore store(open_memory_store(shards(200)),
                    [](const FaultyCall& call) -> std::optional<Error> {
                      if (call.kind != FaultyCall::Kind::kRead) return {};
                      return Error(ErrorCode::kPermissionDenied, "no");
                    });
  IndexOptions options;
  options.threads = 2;

  const Error error = error_of(store, "s", options);

  EXPECT_EQ(error.code(), ErrorCode::kPermissionDenied);
  EXPECT_LT(store.calls(), 30u);  // Not all 200: two threads, a few ahead.
}

}  // namespace
}  // namespace leat
