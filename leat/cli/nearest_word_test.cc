#include "leat/cli/nearest_word.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace leat {
namespace {

constexpr std::array<std::string_view, 5> kWords = {"bench", "bucket", "ls",
                                                    "plan", "what-if"};

TEST(NearestWordTest, FindsWhatASlipMadeOfIt) {
  EXPECT_EQ(nearest_word("bnech", kWords), "bench");  // Exchanged.
  EXPECT_EQ(nearest_word("bukcet", kWords), "bucket");
  EXPECT_EQ(nearest_word("plann", kWords), "plan");      // Added.
  EXPECT_EQ(nearest_word("whatif", kWords), "what-if");  // Left out.
  EXPECT_EQ(nearest_word("lz", kWords), "ls");           // Another.
}

TEST(NearestWordTest, GuessesNothingOfAnotherWord) {
  EXPECT_EQ(nearest_word("train", kWords), "");
  EXPECT_EQ(nearest_word("", kWords), "");
  EXPECT_EQ(nearest_word(std::string(1 << 20, 'a'), kWords), "");
}

}  // namespace
}  // namespace leat
