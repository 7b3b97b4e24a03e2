#include "leat/store/http/shown_text.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

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

TEST(ShownTextTest, HidesPartsOfLongSecrets) {
  const std::vector<std::string> secrets = {
      "AWS4-HMAC-SHA256 Credential=AK/20240229/us-east-1/s3/aws4_request, "
      "Signature=0123456789abcdef0123456789abcdef"};

  EXPECT_EQ(shown_text("got 'ef0123456789abcdef01234567', sorry", secrets),
            "got '(hidden)', sorry");
  EXPECT_EQ(shown_text("no algorithm AWS4-HMAC-SHA256 here", secrets),
            "no algorithm AWS4-HMAC-SHA256 here");
}

TEST(ShownTextTest, IsAlwaysTextThatStaysInItsLine) {
  EXPECT_EQ(shown_text("h\xc3\xa9 \xe2\x82\xac"), "h\xc3\xa9 \xe2\x82\xac");
  // A lone byte, a cut character, a surrogate, an overlong slash.
  EXPECT_EQ(shown_text("a\xff"
                       "b\xe2\x82 \xed\xa0\x80 \xc0\xaf"),
            "a?b?? ??? ??");
  // CSI of 8 bits, and "the rest from right to left".
  EXPECT_EQ(shown_text("a\xc2\x9b"
                       "31m\xe2\x80\xae"
                       "b"),
            "a 31m b");
  const std::string cut = shown_text(std::string(299, 'x') + "\xc3\xa9");
  EXPECT_EQ(cut, std::string(299, 'x'));
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
