// A program with a scheme of its own is a program like any other: datasets open
// by its URLs, loaders read them, its driver takes its options, its ETags count
// as its row says, and messages name it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "leat/cli/loader_flags.h"
#include "leat/engine/loader/loader.h"
#include "leat/engine/stores.h"
#include "leat/index/build.h"
#include "leat/store/url.h"
#include "tests/loader/world.h"

namespace leat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(SchemeOfOurOwnTest, ItsUrlsAreParsedByItsForm) {
  const Url url = must(parse_url("TOY://box/train/what?#/"));
  EXPECT_EQ(url.scheme, "toy");
  EXPECT_EQ(url.authority, "box");
  EXPECT_EQ(url.path, "train/what?#");
  EXPECT_EQ(url.bucket(), "toy://box");
  EXPECT_EQ(url.text(), "toy://box/train/what?#");
  EXPECT_FALSE(parse_url("toy:///train"));
}

TEST(SchemeOfOurOwnTest, ALoaderReadsIt) {
  World world;
  LoaderOptions options = usual_options();
  options.global_batch_size = 4;
  auto loader = must(world.load("toy://box/train", options));

  std::vector<std::uint64_t> ids = flat(must(run_epoch(*loader)));

  std::ranges::sort(ids);
  std::vector<std::uint64_t> all(8);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(ids, all);
}

TEST(SchemeOfOurOwnTest, ItsEtagsCountAsItsRowSays) {
  const auto opened = must(open_store("toy://box/train", {}, {}, nullptr));

  EXPECT_EQ(etag_kind_of(*opened.store), EtagKind::kHttp);
}

TEST(SchemeOfOurOwnTest, ItsDriverTakesItsOptions) {
  const StoreOptions nursery{.of_scheme = {{"toy_room", "nursery"}}};
  EXPECT_EQ(
      must(read_url("toy://box/train/b.bin", nursery, 100, {}, {})).size(),
      std::string("bytes of b").size());

  const StoreOptions attic{.of_scheme = {{"toy_room", "attic"}}};
  const auto none = open_store("toy://box/train", attic, {}, nullptr);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message(), HasSubstr("nursery"));

  const StoreOptions unknown{.of_scheme = {{"room", "nursery"}}};
  const auto refused = open_store("toy://box/train", unknown, {}, nullptr);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(),
              HasSubstr("no scheme has an option 'room'; there are region, "
                        "profile, toy_room"));
}

TEST(SchemeOfOurOwnTest, TheCommandLineTakesItsOptions) {
  CLI::App app;
  StoreFlags flags;
  flags.add_to(app);
  EXPECT_THAT(app.help(), HasSubstr("where the box stands"));

  app.parse("--toy-room attic --region r");

  EXPECT_THAT(flags.store_options().of_scheme,
              ElementsAre(Pair("region", "r"), Pair("toy_room", "attic")));
}

TEST(SchemeOfOurOwnTest, ItSaysWhatIsToBeKnownOfAccess) {
  const auto found = must(diagnose_access("toy://box/train", {}, {}, {}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].found, "box is open");
}

TEST(SchemeOfOurOwnTest, MessagesNameIt) {
  const auto url = parse_url("gopher://box/train");
  ASSERT_FALSE(url);
  EXPECT_NE(url.error().message().find("file://, toy:// or a path"),
            std::string::npos)
      << url.error().message();
}

}  // namespace
}  // namespace leat
