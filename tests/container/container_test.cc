// A program with a container of its own is a program like any other: loaders
// read its members as they read those of a tar, and messages name it.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "leat/codec/testing/tar_builder.h"
#include "leat/engine/loader/loader.h"
#include "leat/index/build.h"
#include "leat/store/memory/memory_store.h"
#include "tests/loader/world.h"

namespace leat {
namespace {

using ::testing::HasSubstr;

constexpr int kShards = 4;
constexpr int kSamples = 12;

class Box {
 public:
  Box& add(std::string_view name, std::string_view body) {
    std::string head(name);
    head.resize(24);
    const std::uint64_t size = body.size();
    head.append(reinterpret_cast<const char*>(&size), sizeof(size));
    bytes_ += head + std::string(body);
    return *this;
  }
  const std::string& finish() const { return bytes_; }

 private:
  std::string bytes_;
};

/// Shard `shard` in such a container: samples with the fields `bin` and `txt`.
template <class Builder>
std::string packed(int shard) {
  Builder builder;
  for (int i = 0; i < kSamples; ++i) {
    const int id = shard * kSamples + i;
    builder.add(fmt::format("{}.bin", id),
                std::string(static_cast<std::size_t>(7 * id), 'x'));
    builder.add(fmt::format("{}.txt", id), fmt::format("text {}", id));
  }
  return builder.finish();
}

std::string error_of(const MemoryObjects& objects) {
  const auto store = open_memory_store(objects);
  const auto built = build_catalogue(*store, "", {}, {});
  EXPECT_FALSE(built);
  return built ? "" : built.error().message();
}

class ContainerOfOurOwnTest : public ::testing::Test {
 protected:
  template <class Builder>
  std::string folder(const std::string& name, const std::string& ending) {
    const auto folder = world_.root() / name;
    std::filesystem::create_directories(folder);
    for (int shard = 0; shard < kShards; ++shard) {
      std::ofstream(folder / (std::to_string(shard) + ending), std::ios::binary)
          << packed<Builder>(shard);
    }
    return folder.string();
  }

  World world_;
};

TEST_F(ContainerOfOurOwnTest, ALoaderReadsItAsATarOfTheSame) {
  auto tars = must(world_.load(folder<testing::TarBuilder>("tars", ".tar"),
                               usual_options()));
  auto boxes = must(world_.load(folder<Box>("boxes", ".box"), usual_options()));

  const Seen expected = must(run_epoch(*tars));
  const Seen seen = must(run_epoch(*boxes));

  EXPECT_EQ(flat(seen).size(), static_cast<std::size_t>(kShards * kSamples));
  EXPECT_EQ(flat(seen), flat(expected));
  EXPECT_EQ(seen.stats.content_hash, expected.stats.content_hash);
}

TEST_F(ContainerOfOurOwnTest, TheFirstEpochIndexesItWhileItReads) {
  LoaderOptions options = usual_options();
  options.shuffle = ShuffleChoice::kStream;
  auto loader =
      must(world_.load_unindexed(folder<Box>("boxes", ".box"), options));

  EXPECT_EQ(flat(must(run_epoch(*loader))).size(),
            static_cast<std::size_t>(kShards * kSamples));
}

TEST_F(ContainerOfOurOwnTest, AnIndexBesideItIsNotLookedAt) {
  const auto store =
      open_memory_store({{"0.box", packed<Box>(0)}, {"0.idx", "v1.2 9"}});

  const auto built = must(build_catalogue(*store, "", {}, {}));

  EXPECT_EQ(built.note, "");
}

TEST_F(ContainerOfOurOwnTest, ItsErrorsNameTheShard) {
  const std::string whole = packed<Box>(0);
  // Within the second head, and within the last body.
  for (const std::size_t bytes : {std::size_t{40}, whole.size() - 1}) {
    const std::string message =
        error_of({{"0.box", whole}, {"1.box", whole.substr(0, bytes)}});

    EXPECT_THAT(message, HasSubstr("1.box"));
    EXPECT_THAT(message, HasSubstr("the box is cut short"));
  }
}

TEST_F(ContainerOfOurOwnTest, MessagesNameIt) {
  EXPECT_THAT(error_of({{"0.box", packed<Box>(0)}, {"1.png", "x"}}),
              HasSubstr("'0.box' is a box shard and '1.png' is not: say which "
                        "are samples (extensions=\"box\""));
  EXPECT_THAT(error_of({{"0.box.gz", "x"}}),
              HasSubstr("'0.box.gz' is a compressed archive"));
}

}  // namespace
}  // namespace leat
