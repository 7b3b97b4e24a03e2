#include "leat/index/object_keys.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

TEST(ObjectKeysTest, RisingKeysAreNumberedAndTheLastIsFoundAgain) {
  ObjectKeys keys;

  EXPECT_EQ(keys.number_of(0, "a"), 0u);
  EXPECT_EQ(keys.number_of(0, "b"), 1u);
  EXPECT_EQ(keys.number_of(0, "b"), 1u);
  EXPECT_EQ(keys.number_of(0, "c"), 2u);
  EXPECT_EQ(keys.size(), 3u);
}

TEST(ObjectKeysTest, OneKeyInTwoPlacesIsTwoObjects) {
  ObjectKeys keys;

  EXPECT_EQ(keys.number_of(0, "a"), 0u);
  EXPECT_EQ(keys.number_of(1, "a"), 1u);
  EXPECT_EQ(keys.number_of(0, "a"), 0u);
  EXPECT_EQ(keys.number_of(1, "a"), 1u);

  const TextPool names = std::move(keys).take_names(true);
  ASSERT_EQ(names.ends.size(), 2u);
  EXPECT_EQ(names.at(0), "0/a");
  EXPECT_EQ(names.at(1), "1/a");
}

TEST(ObjectKeysTest, NumbersAsAMapDoesWhateverTheOrder) {
  for (const std::uint64_t step : {1, 7, 4999}) {
    ObjectKeys keys;
    std::map<std::string, std::uint32_t> map;
    for (std::uint64_t i = 0; i < 20'000; ++i) {
      const std::string key = fmt::format("{:05}", i * step % 5000);
      const auto number = static_cast<std::uint32_t>(map.size());
      const std::uint32_t expected = map.emplace(key, number).first->second;
      ASSERT_EQ(keys.number_of(0, key), expected) << step << ", " << i;
    }
    const TextPool names = std::move(keys).take_names(false);
    ASSERT_EQ(names.ends.size(), map.size());
    for (const auto& [key, number] : map) EXPECT_EQ(names.at(number), key);
  }
}

}  // namespace
}  // namespace leat
