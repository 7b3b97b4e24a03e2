#include "leat/index/catalogue_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "leat/base/buffer.h"
#include "leat/dataset/catalogue_writer.h"

namespace leat {
namespace {

using ::testing::HasSubstr;

/// Maps even the smallest file.
constexpr MapOptions kMapped{.most_copied_bytes = 0};

Buffer catalogue_of(std::uint64_t samples) {
  CatalogueWriter writer(Layout::kShards, EtagKind::kNone);
  const std::size_t number = writer.add_field({"number", FieldKind::kInt64});
  for (std::uint64_t i = 0; i < samples; ++i) {
    writer.add_sample(std::to_string(i));
    writer.set_int64(number, static_cast<std::int64_t>(i) << 40);
  }
  return *std::move(writer).finish();
}

class CatalogueFileTest : public ::testing::Test {
 protected:
  CatalogueFileTest() {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
  }
  ~CatalogueFileTest() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }

  std::filesystem::path folder_;
};

TEST_F(CatalogueFileTest, MapsWhatWasWritten) {
  ASSERT_TRUE(write_catalogue(path("deep/below/c"), catalogue_of(3).span()));

  const Result<Catalogue> catalogue = map_catalogue(path("deep/below/c"));

  ASSERT_TRUE(catalogue) << catalogue.error().message();
  EXPECT_EQ(catalogue->samples(), 3u);
}

TEST_F(CatalogueFileTest, LeavesNoOtherFileBehind) {
  ASSERT_TRUE(write_catalogue(path("c"), catalogue_of(3).span()));
  ASSERT_TRUE(write_catalogue(path("c"), catalogue_of(4).span()));

  const auto files = std::filesystem::directory_iterator(folder_);
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST_F(CatalogueFileTest, AMappedCatalogueOutlivesItsReplacement) {
  constexpr std::uint64_t kMany = 10'000;
  ASSERT_TRUE(write_catalogue(path("c"), catalogue_of(kMany).span()));
  const Result<Catalogue> old = map_catalogue(path("c"), kMapped);
  ASSERT_TRUE(old) << old.error().message();

  ASSERT_TRUE(write_catalogue(path("c"), catalogue_of(1).span()));

  EXPECT_EQ(old->key({kMany - 1}), std::to_string(kMany - 1));
  EXPECT_EQ(map_catalogue(path("c"), kMapped)->samples(), 1u);
}

TEST_F(CatalogueFileTest, ACutFileIsAnErrorThatSaysWhatToDo) {
  for (const MapOptions& options : {MapOptions{}, kMapped}) {
    ASSERT_TRUE(write_catalogue(path("c"), catalogue_of(10'000).span()));
    std::filesystem::resize_file(path("c"),
                                 std::filesystem::file_size(path("c")) / 2);

    const Result<Catalogue> cut = map_catalogue(path("c"), options);

    ASSERT_FALSE(cut);
    EXPECT_EQ(cut.error().code(), ErrorCode::kCorrupt);
    EXPECT_THAT(cut.error().message(), HasSubstr(path("c")));
    EXPECT_THAT(cut.error().message(), HasSubstr("leat index --refresh"));
  }
}

TEST_F(CatalogueFileTest, OneRankOfANodeChecksEveryByte) {
  Buffer file = catalogue_of(10'000);
  file.data()[file.size() / 2] = ~file.data()[file.size() / 2];
  ASSERT_TRUE(write_catalogue(path("c"), file.span()));
  const auto open_as = [&](std::uint32_t local_rank) {
    MapOptions options = map_options_of({.local = {local_rank, 4}});
    options.most_copied_bytes = kMapped.most_copied_bytes;
    return map_catalogue(path("c"), options);
  };

  EXPECT_EQ(open_as(0).error().code(), ErrorCode::kCorrupt);
  EXPECT_TRUE(open_as(1));
}

TEST_F(CatalogueFileTest, TellsWhatIsNotThereFromWhatIsNoFile) {
  std::filesystem::create_directories(folder_);

  EXPECT_EQ(map_catalogue(path("none")).error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(map_catalogue(folder_.string()).error().code(),
            ErrorCode::kInvalidArgument);
}

TEST_F(CatalogueFileTest, CannotWriteBelowAFile) {
  ASSERT_TRUE(write_catalogue(path("c"), catalogue_of(1).span()));

  EXPECT_FALSE(write_catalogue(path("c/d"), catalogue_of(1).span()));
}

TEST(CatalogueCachePathTest, FollowsTheEnvironmentInOrder) {
  const std::string tmp = ::testing::TempDir();  // Can be written.
  const auto folder_of = [](auto variables) {
    const auto path = catalogue_cache_path("s3://b", fake_env(variables));
    return path ? path->substr(0, path->find("/catalogues/")) : "none";
  };
  using Variables = std::map<std::string, std::string, std::less<>>;

  EXPECT_EQ(folder_of(Variables{{"LEAT_CACHE_DIR", "/own"},
                                {"XDG_CACHE_HOME", tmp + "xdg"},
                                {"HOME", tmp + "u"}}),
            "/own");
  EXPECT_EQ(folder_of(Variables{{"XDG_CACHE_HOME", tmp + "xdg"},
                                {"HOME", tmp + "u"}}),
            tmp + "xdg/leat");
  EXPECT_EQ(folder_of(Variables{{"LEAT_CACHE_DIR", ""}, {"HOME", tmp + "u"}}),
            tmp + "u/.cache/leat");
  EXPECT_EQ(folder_of(Variables{}), "none");
}

TEST(CatalogueCachePathTest, DiffersByPlace) {
  const Env env = fake_env({{"LEAT_CACHE_DIR", "/own"}});

  EXPECT_NE(catalogue_cache_path("s3://a", env),
            catalogue_cache_path("s3://b", env));
}

}  // namespace
}  // namespace leat
