#include "leat/store/cloud/shown_text.h"

#include <gtest/gtest.h>

#include <array>

namespace leat {
namespace {

TEST(ShownTextTest, HidesKnownSecretsBeforeItCuts) {
  const std::array<std::string_view, 3> secrets = {"s3cr3t", "", "abc"};

  EXPECT_EQ(shown_text("token s3cr3t, again s3cr3t.", secrets),
            "token (hidden), again (hidden).");
  EXPECT_EQ(shown_text("abc is too short", secrets), "abc is too short");
  EXPECT_EQ(shown_text("a\nb\x1b[31m\n", secrets), "a b [31m");
  const std::string cut = shown_text(std::string(297, 'x') + "s3cr3t", secrets);
  EXPECT_EQ(cut.size(), 300u);
  EXPECT_EQ(cut.find("s3c"), std::string::npos);
}

TEST(ShownTextTest, HidesWhatMayBeASecretWhereNoneIsKnown) {
  EXPECT_EQ(shown_without_long_words(
                "bad key wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY given"),
            "bad key (hidden) given");
  EXPECT_EQ(shown_without_long_words("token expired: run `aws sso login`"),
            "token expired: run `aws sso login`");
}

}  // namespace
}  // namespace leat
