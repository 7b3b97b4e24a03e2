// Tests of the search for a catalogue, and of catalogues that are not good.
#include "leat/index/open_catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "leat/base/buffer.h"
#include "leat/base/hash.h"
#include "leat/dataset/catalogue_writer.h"
#include "leat/index/catalogue_file.h"
#include "leat/index/job_listing.h"
#include "leat/store/memory/memory_store.h"
#include "leat/store/store_wrapper.h"

namespace leat {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

/// A store as plain HTTP is one: nobody can list it or write to it.
class UnlistableStore final : public Store {
 public:
  explicit UnlistableStore(Store& inner) : inner_(inner) {}

  void read(ReadRequest request, std::stop_token stop, ReadDone done) override {
    inner_.read(std::move(request), std::move(stop), std::move(done));
  }
  Result<ListPage> list(const ListRequest&, std::stop_token) override {
    ADD_FAILURE() << "listed though it cannot be";
    return Error(ErrorCode::kInvalidArgument, "cannot list");
  }
  Result<ObjectInfo> write(std::string_view, std::span<const std::byte>,
                           std::stop_token) override {
    return Error(ErrorCode::kInvalidArgument, "cannot write");
  }
  Result<ObjectInfo> stat(std::string_view key, std::stop_token stop) override {
    return inner_.stat(key, std::move(stop));
  }
  StoreTraits traits() const override {
    StoreTraits traits = inner_.traits();
    traits.can_list = false;
    traits.can_write = false;
    return traits;
  }
  std::string url_of(std::string_view key) const override {
    return inner_.url_of(key);
  }

 private:
  Store& inner_;
};

/// A store whose HEAD says that its catalogue is larger than it is.
class LyingStore final : public StoreWrapper {
 public:
  LyingStore(std::unique_ptr<Store> inner, std::uint64_t bytes)
      : StoreWrapper(std::move(inner)), bytes_(bytes) {}

  void read(ReadRequest request, std::stop_token stop, ReadDone done) override {
    inner_->read(std::move(request), std::move(stop), std::move(done));
  }
  Result<ObjectInfo> stat(std::string_view key, std::stop_token stop) override {
    Result<ObjectInfo> info = inner_->stat(key, std::move(stop));
    if (info && key.ends_with("/catalogue")) info->size_bytes = bytes_;
    return info;
  }

 private:
  const std::uint64_t bytes_;
};

class OpenCatalogueTest : public ::testing::Test {
 protected:
  OpenCatalogueTest() {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    env_ = fake_env({{"LEAT_CACHE_DIR", folder_.string()}});
  }
  ~OpenCatalogueTest() override { std::filesystem::remove_all(folder_); }

  /// Takes what is there as it stands, unless told otherwise.
  Result<OpenedCatalogue> open(Store& store,
                               const CatalogueOptions& options = standing()) {
    return open_or_build(store, "p", "s3://bucket/p", options, env_, {});
  }

  static CatalogueOptions standing() {
    CatalogueOptions options;
    options.refresh = Refresh::never();
    return options;
  }

  void add_object(const std::string& key) {
    ASSERT_TRUE(store_->write(key, as_bytes("x"), {}));
  }

  static void flip_a_byte(const std::string& path) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('\x55');
  }

  std::filesystem::path folder_;
  Env env_;
  std::unique_ptr<Store> store_ =
      open_memory_store({{"p/a/1", "1"}, {"p/b/2", "2"}},
                        {.most_keys_per_page = 1000, .url = "s3://bucket/"});
};

TEST_F(OpenCatalogueTest, BuildsOnceAndThenReadsItsCache) {
  const auto built = open(*store_);
  ASSERT_TRUE(built) << built.error().message();
  EXPECT_EQ(built->source, CatalogueSource::kBuilt);
  add_object("p/c/3");

  const auto again = open(*store_);

  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->source, CatalogueSource::kCache);
  EXPECT_EQ(again->location, built->location);
  EXPECT_EQ(again->catalogue->samples(), 2u);
  EXPECT_EQ(again->catalogue->digest(), built->catalogue->digest());
}

TEST_F(OpenCatalogueTest, ListsAgainWhenAsked) {
  ASSERT_TRUE(open(*store_));
  add_object("p/c/3");
  CatalogueOptions refreshing;
  refreshing.refresh = Refresh::always();

  const auto refreshed = open(*store_, refreshing);

  ASSERT_TRUE(refreshed) << refreshed.error().message();
  EXPECT_EQ(refreshed->catalogue->samples(), 3u);
  EXPECT_EQ(open(*store_)->catalogue->samples(), 3u);
}

TEST_F(OpenCatalogueTest, ListsAgainWhenAnObjectHasCome) {
  const auto before = open(*store_, {});
  ASSERT_TRUE(before) << before.error().message();
  EXPECT_EQ(open(*store_, {})->source, CatalogueSource::kCache);
  add_object("p/c/3");
  add_object("p/c/4");
  ASSERT_TRUE(store_->write("p/a/1", as_bytes("another"), {}));

  const auto after = open(*store_, {});

  ASSERT_TRUE(after) << after.error().message();
  EXPECT_EQ(after->source, CatalogueSource::kBuilt);
  EXPECT_EQ(after->catalogue->samples(), 4u);
  EXPECT_THAT(after->note,
              ContainsRegex("p: 2 objects were added, 0 removed and 1 written "
                            "anew since the catalogue of [0-9]+ s ago; listed "
                            "again"));
  const auto again = open(*store_, {});
  EXPECT_EQ(again->source, CatalogueSource::kCache);
  EXPECT_EQ(again->note, "");
}

TEST_F(OpenCatalogueTest, AHiddenObjectChangesNothing) {
  ASSERT_TRUE(open(*store_, {}));
  add_object("p/.hidden");
  add_object("p/_SUCCESS");
  EXPECT_EQ(open(*store_, {})->source, CatalogueSource::kCache);
}

TEST_F(OpenCatalogueTest, WhatIsPublishedIsLookedAtToo) {
  ASSERT_TRUE(publish_catalogue(*store_, "p", {}, {}));
  EXPECT_EQ(open(*store_, {})->source, CatalogueSource::kPublished);
  add_object("p/c/3");

  EXPECT_EQ(open(*store_, {})->source, CatalogueSource::kBuilt);
  EXPECT_EQ(open(*store_, {})->source, CatalogueSource::kCache);
  EXPECT_EQ(open(*store_)->source, CatalogueSource::kPublished);
}

TEST_F(OpenCatalogueTest, WhatIsPublishedWithEtagsOfFormerBytesIsNotTaken) {
  const auto published = publish_catalogue(*store_, "p", {}, {});
  ASSERT_TRUE(store_->write("p/a/1", as_bytes("3"), {}));  // The same size.
  const auto built = open(*store_, {});
  ASSERT_EQ(built->source, CatalogueSource::kBuilt);
  const Catalogue& first = *published->catalogue;
  ASSERT_EQ(built->catalogue->digest(), first.digest());
  ASSERT_NE(built->catalogue->object({0}).etag, first.object({0}).etag);

  for (int starts = 0; starts < 2; ++starts) {
    const auto again = open(*store_, {});

    EXPECT_EQ(again->source, CatalogueSource::kCache);
    EXPECT_EQ(again->catalogue->object({0}).etag,
              built->catalogue->object({0}).etag);
  }
}

TEST_F(OpenCatalogueTest, NorDoOtherRanksTakeIt) {
  ASSERT_TRUE(publish_catalogue(*store_, "p", {}, {}));
  ASSERT_TRUE(store_->write("p/a/1", as_bytes("3"), {}));
  const auto env_of = [&](const std::string& rank) {
    return fake_env({{"LEAT_CACHE_DIR", folder_.string()},
                     {"RANK", rank},
                     {"WORLD_SIZE", "2"},
                     {"LOCAL_RANK", rank},
                     {"LOCAL_WORLD_SIZE", "2"}});
  };
  env_ = env_of("0");
  const auto built = open(*store_, {});
  ASSERT_EQ(built->source, CatalogueSource::kBuilt);
  // This process has looked, and would look again: now another rank has.
  const std::string seen = built->file + ".seen";
  std::filesystem::last_write_time(
      seen, std::filesystem::last_write_time(seen) + std::chrono::seconds(3));
  env_ = env_of("1");

  const auto other = open(*store_, {});

  EXPECT_EQ(other->source, CatalogueSource::kCache);
  EXPECT_EQ(other->catalogue->object({0}).etag,
            built->catalogue->object({0}).etag);
}

/// An inventory whose version is the number of its objects.
CatalogueOptions inventory_of(int objects, Refresh refresh) {
  CatalogueOptions options;
  options.refresh = refresh;
  options.index.objects_version = std::to_string(objects);
  options.index.objects =
      [objects](std::stop_token) -> Result<std::vector<ObjectInfo>> {
    std::vector<ObjectInfo> all;
    for (int i = 1; i <= objects; ++i) {
      all.push_back({.key = "a/" + std::to_string(i), .size_bytes = 1});
    }
    return all;
  };
  return options;
}

TEST_F(OpenCatalogueTest, ANewerInventoryIsTakenAfterALookAtTheStore) {
  const auto opened = [&](const CatalogueOptions& options) {
    const auto found = open(*store_, options);
    EXPECT_TRUE(found) << found.error().message();
    return found ? found->catalogue->samples() : 0;
  };
  EXPECT_EQ(opened({}), 2u);  // By listing.
  EXPECT_EQ(opened(inventory_of(3, Refresh::automatic())), 3u);
  EXPECT_EQ(opened(inventory_of(4, Refresh::automatic())), 4u);
  EXPECT_EQ(opened({}), 2u);
  EXPECT_EQ(opened(inventory_of(5, Refresh::automatic())), 5u);
}

TEST_F(OpenCatalogueTest, ANewerInventoryIsTakenAfterOneThatWasToBeRead) {
  ASSERT_TRUE(open(*store_, inventory_of(3, Refresh::always())));
  EXPECT_EQ(open(*store_, inventory_of(3, Refresh::automatic()))->source,
            CatalogueSource::kCache);
  const auto newer = open(*store_, inventory_of(4, Refresh::automatic()));
  EXPECT_EQ(newer->source, CatalogueSource::kBuilt);
  EXPECT_EQ(newer->catalogue->samples(), 4u);
}

TEST_F(OpenCatalogueTest, WhatIsPublishedWinsOverAnInventoryAtEachStart) {
  ASSERT_TRUE(open(*store_, {}));  // Keeps one that is of no inventory.
  const auto published = publish_catalogue(*store_, "p", {}, {});
  ASSERT_TRUE(published) << published.error().message();

  for (int starts = 0; starts < 2; ++starts) {
    const auto found = open(*store_, inventory_of(3, Refresh::automatic()));

    ASSERT_TRUE(found) << found.error().message();
    EXPECT_EQ(found->source, CatalogueSource::kPublished) << starts;
    EXPECT_EQ(found->catalogue->digest(), published->catalogue->digest());
  }
}

TEST_F(OpenCatalogueTest, AnEarlierOneIsKeptForEpochsThatBeganWithIt) {
  const auto before = open(*store_, {});
  const std::string digest = before->catalogue->digest().hex();
  EXPECT_FALSE(earlier_catalogue("s3://bucket/p", {}, digest, env_));
  add_object("p/c/3");
  ASSERT_TRUE(open(*store_, {}));

  const auto earlier = earlier_catalogue("s3://bucket/p", {}, digest, env_);

  ASSERT_TRUE(earlier);
  EXPECT_EQ(earlier->catalogue->samples(), 2u);
  EXPECT_FALSE(earlier_catalogue("s3://bucket/p", {}, "../" + digest, env_));
  for (int more = 4; more < 9; ++more) {  // A few are kept, not all.
    add_object("p/c/" + std::to_string(more));
    ASSERT_TRUE(open(*store_, {}));
  }
  EXPECT_FALSE(earlier_catalogue("s3://bucket/p", {}, digest, env_));
}

TEST_F(OpenCatalogueTest, AnEarlierOneIsKeptWithoutALookToo) {
  for (const char* refresh : {"always", "if-older-than:1d"}) {
    const auto before = open(*store_, {});
    const std::string digest = before->catalogue->digest().hex();
    add_object(std::string("p/c/") + refresh);
    std::filesystem::last_write_time(
        before->file,
        std::filesystem::file_time_type::clock::now() - std::chrono::hours(25));
    CatalogueOptions options;
    options.refresh = *Refresh::parse(refresh);
    ASSERT_EQ(open(*store_, options)->source, CatalogueSource::kBuilt);

    const auto earlier = earlier_catalogue("s3://bucket/p", {}, digest, env_);

    ASSERT_TRUE(earlier) << refresh;
    EXPECT_EQ(earlier->catalogue->samples(), before->catalogue->samples());
  }
}

TEST_F(OpenCatalogueTest, TheLatestEarlierOneOfADigestIsKept) {
  ASSERT_TRUE(open(*store_, {}));
  ASSERT_TRUE(store_->write("p/a/1", as_bytes("3"), {}));  // The same size.
  const auto begun = open(*store_, {});
  const std::string digest = begun->catalogue->digest().hex();
  add_object("p/c/3");
  ASSERT_TRUE(open(*store_, {}));

  const auto earlier = earlier_catalogue("s3://bucket/p", {}, digest, env_);

  ASSERT_TRUE(earlier);
  EXPECT_EQ(earlier->catalogue->object({0}).etag,
            begun->catalogue->object({0}).etag);
  for (const auto& file :
       std::filesystem::recursive_directory_iterator(folder_)) {
    EXPECT_EQ(file.path().string().find(".link-"), std::string::npos);
  }
}

TEST_F(OpenCatalogueTest, ALinkThatAKilledProcessLeftIsRemoved) {
  const auto before = open(*store_, {});
  const std::string of_killed = before->file + ".link-1700000000-0123456789";
  const std::string of_former_version = before->file + ".link-4711-1";
  const auto now = std::chrono::floor<std::chrono::seconds>(
      std::chrono::system_clock::now());
  const std::string of_another =
      before->file + ".link-" + std::to_string(now.time_since_epoch().count()) +
      "-0123456789";
  for (const auto& link : {of_killed, of_former_version, of_another}) {
    std::filesystem::create_hard_link(before->file, link);
  }
  add_object("p/c/3");

  ASSERT_TRUE(open(*store_, {}));

  EXPECT_FALSE(std::filesystem::exists(of_killed));
  EXPECT_FALSE(std::filesystem::exists(of_former_version));
  EXPECT_TRUE(std::filesystem::exists(of_another)) << "it may still need it";
}

/// A job whose other node has listed.
class OtherNodesBoard final : public ListingBoard {
 public:
  explicit OtherNodesBoard(std::string listed) : listed_(std::move(listed)) {}

  std::string begin(std::string_view) override { return "opening"; }
  Result<ListingTurn> take_turn(const std::string&,
                                const std::stop_token&) override {
    return ListingTurn{.who = ListingTurn::Who::kOther,
                       .posted = {.hash = xxh3_128(as_bytes(listed_)).hex(),
                                  .size_bytes = listed_.size(),
                                  .listed_at = {}}};
  }
  Result<Buffer> fetch(const std::string&) override {
    ++fetches;
    Buffer bytes(listed_.size());
    std::memcpy(bytes.data(), listed_.data(), listed_.size());
    return bytes;
  }
  void post(const std::string&, const PostedCatalogue&,
            std::span<const std::byte>) override {}
  void give_up(const std::string&) override {}

  int fetches = 0;

 private:
  const std::string listed_;
};

TEST_F(OpenCatalogueTest, AnotherNodesListingIsFetchedIfTheFileIsNotTrusted) {
  const auto built = open(*store_, {});
  ASSERT_TRUE(built) << built.error().message();
  std::ifstream file(built->file, std::ios::binary);
  const auto board = std::make_shared<OtherNodesBoard>(
      std::string(std::istreambuf_iterator<char>(file), {}));
  CatalogueOptions options;
  options.job = board;
  ASSERT_TRUE(open(*store_, options));
  EXPECT_EQ(board->fetches, 0);  // The same file is there.
  std::filesystem::permissions(built->file, std::filesystem::perms::group_write,
                               std::filesystem::perm_options::add);

  const auto found = open(*store_, options);

  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(board->fetches, 1);
  EXPECT_EQ(found->catalogue->digest(), built->catalogue->digest());
}

TEST_F(OpenCatalogueTest, LooksBesideTheDataFirst) {
  ASSERT_TRUE(open(*store_));
  add_object("p/c/3");
  const auto published = publish_catalogue(*store_, "p", {}, {});
  ASSERT_TRUE(published) << published.error().message();

  const auto found = open(*store_);

  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->source, CatalogueSource::kPublished);
  EXPECT_EQ(found->location, "s3://bucket/p/.leat/catalogue");
  EXPECT_EQ(found->catalogue->samples(), 3u);
}

TEST_F(OpenCatalogueTest, DoesNotCountAPublishedCatalogueAsData) {
  ASSERT_TRUE(publish_catalogue(*store_, "p", {}, {}));

  const auto again = publish_catalogue(*store_, "p", {}, {});

  ASSERT_TRUE(again);
  EXPECT_EQ(again->catalogue->samples(), 2u);
}

TEST_F(OpenCatalogueTest, ListsAgainWhatIsTooOld) {
  const auto built = open(*store_);
  ASSERT_TRUE(built);
  add_object("p/c/3");
  CatalogueOptions daily;
  daily.refresh = *Refresh::parse("if-older-than:1d");

  EXPECT_EQ(open(*store_, daily)->catalogue->samples(), 2u);
  std::filesystem::last_write_time(
      built->location,
      std::filesystem::file_time_type::clock::now() - std::chrono::hours(25));
  EXPECT_EQ(open(*store_)->catalogue->samples(), 2u);
  EXPECT_EQ(open(*store_, daily)->source, CatalogueSource::kBuilt);
  EXPECT_EQ(open(*store_, daily)->source, CatalogueSource::kCache);
  EXPECT_EQ(open(*store_)->catalogue->samples(), 3u);
}

TEST_F(OpenCatalogueTest, ServesWhatCannotBeListed) {
  const auto published = publish_catalogue(*store_, "p", {}, {});
  ASSERT_TRUE(published);
  UnlistableStore http(*store_);

  const auto found = open(http);

  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->catalogue->digest(), published->catalogue->digest());
}

TEST_F(OpenCatalogueTest, SaysHowToServeWhatCannotBeListed) {
  UnlistableStore http(*store_);

  const auto found = open(http);

  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code(), ErrorCode::kNotFound);
  EXPECT_THAT(found.error().message(), HasSubstr("leat index --publish"));
}

TEST_F(OpenCatalogueTest, ADamagedCacheIsAnErrorThatSaysWhatToDo) {
  const auto built = open(*store_);
  ASSERT_TRUE(built);
  flip_a_byte(built->location);

  const auto found = open(*store_);

  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(found.error().message(), HasSubstr("leat index --refresh"));
  CatalogueOptions refreshing;
  refreshing.refresh = Refresh::always();
  EXPECT_TRUE(open(*store_, refreshing));
  EXPECT_TRUE(open(*store_));
}

TEST_F(OpenCatalogueTest, ADamagedPublicationIsAnErrorThatSaysWhatToDo) {
  ASSERT_TRUE(publish_catalogue(*store_, "p", {}, {}));
  const auto bytes = read_object(*store_, "p/.leat/catalogue", 1 << 20, {});
  ASSERT_TRUE(bytes);
  std::string damaged(as_text(bytes->span()));
  damaged.back() = static_cast<char>(~damaged.back());
  ASSERT_TRUE(store_->write("p/.leat/catalogue", as_bytes(damaged), {}));

  const auto found = open(*store_);

  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(found.error().message(), HasSubstr("leat index --publish"));
}

TEST_F(OpenCatalogueTest, APublicationThatIsLargerThanItSaysTakesNoMemory) {
  ASSERT_TRUE(publish_catalogue(*store_, "p", {}, {}));
  LyingStore lying(std::move(store_), std::uint64_t{60} << 30);

  const auto found = open(lying);

  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(found.error().message(), HasSubstr("the store says 60 GiB"));
  EXPECT_THAT(found.error().message(), HasSubstr("leat index --publish"));
}

TEST_F(OpenCatalogueTest, APublicationThatCannotFitIsRefused) {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 50;
  ASSERT_TRUE(publish_catalogue(*store_, "p", {}, {}));
  const auto bytes = read_object(*store_, "p/.leat/catalogue", 1 << 20, {});
  ASSERT_TRUE(bytes);
  std::string huge(as_text(bytes->span()));
  std::memcpy(huge.data() + 16, &kHuge, sizeof kHuge);  // Its length.
  ASSERT_TRUE(store_->write("p/.leat/catalogue", as_bytes(huge), {}));
  LyingStore lying(std::move(store_), kHuge);

  const auto found = open(lying);

  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code(), ErrorCode::kResourceExhausted);
  EXPECT_THAT(found.error().message(), HasSubstr("s3://bucket/p/.leat/"));
  EXPECT_THAT(found.error().message(), HasSubstr("remove that object"));
}

TEST_F(OpenCatalogueTest, AJobOfSeveralNodesWritesNothingBesideTheData) {
  env_ = fake_env({{"LEAT_CACHE_DIR", folder_.string()},
                   {"RANK", "0"},
                   {"WORLD_SIZE", "4"},
                   {"LOCAL_RANK", "0"},
                   {"LOCAL_WORLD_SIZE", "2"}});

  ASSERT_TRUE(open(*store_));

  const auto listed = store_->list({.prefix = "p/.leat"}, {});
  ASSERT_TRUE(listed);
  EXPECT_TRUE(listed->objects.empty());
}

TEST_F(OpenCatalogueTest, GoesOnWithoutACacheThatCannotBeWritten) {
  std::filesystem::create_directories(folder_);
  const std::string file = (folder_ / "file").string();
  std::ofstream(file) << "in the way";
  env_ = fake_env({{"LEAT_CACHE_DIR", file + "/below"}});

  const auto built = open(*store_);

  ASSERT_TRUE(built) << built.error().message();
  EXPECT_EQ(built->catalogue->samples(), 2u);
  EXPECT_TRUE(built->location.empty());
  EXPECT_THAT(built->note, HasSubstr("LEAT_CACHE_DIR"));
}

TEST_F(OpenCatalogueTest, GoesOnWithoutAnyCacheFolder) {
  env_ = fake_env({});

  const auto built = open(*store_);

  ASSERT_TRUE(built) << built.error().message();
  EXPECT_THAT(built->note, HasSubstr("LEAT_CACHE_DIR"));
}

TEST_F(OpenCatalogueTest, KeepsOneCatalogueForEachListOfClasses) {
  CatalogueOptions reversed;
  reversed.index.classes = {"b", "a"};
  ASSERT_TRUE(publish_catalogue(*store_, "p", {}, {}));

  const auto own = open(*store_, reversed);
  const auto usual = open(*store_);

  ASSERT_TRUE(own) << own.error().message();
  EXPECT_EQ(own->catalogue->int64(1, {0}), 1);
  EXPECT_EQ(usual->catalogue->int64(1, {0}), 0);
}

TEST(PublishCatalogueTest, LeavesEtagsOutOnAFileSystem) {
  const auto folder = open_memory_store(
      {{"a/1", "1"}}, {.most_keys_per_page = 1000, .url = "/data/"});

  const auto published = publish_catalogue(*folder, "", {}, {});

  ASSERT_TRUE(published) << published.error().message();
  EXPECT_EQ(published->catalogue->etag_kind(), EtagKind::kNone);
}

/// Whether a file is mapped by this process.
bool is_mapped(const std::string& file) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.ends_with(file)) return true;
  }
  return false;
}

TEST_F(OpenCatalogueTest, ALargeCatalogueThatWasMadeElsewhereIsMapped) {
  CatalogueWriter writer(Layout::kShards, EtagKind::kNone);
  const std::size_t name = writer.add_field({"name", FieldKind::kString});
  for (const char letter : std::string("abcdefghi")) {
    writer.add_sample(std::string(1, letter));
    writer.set_string(name, std::string(8 << 20, letter));
  }
  BuiltCatalogue built{.bytes = *std::move(writer).finish(), .note = ""};

  const auto kept = keep_catalogue(std::move(built), "place", {}, env_);

  ASSERT_TRUE(kept) << kept.error().message();
  ASSERT_GT(std::filesystem::file_size(kept->file),
            MapOptions().most_copied_bytes);
  EXPECT_TRUE(is_mapped(kept->file));
  EXPECT_EQ(kept->catalogue->samples(), 9u);
}

}  // namespace
}  // namespace leat
