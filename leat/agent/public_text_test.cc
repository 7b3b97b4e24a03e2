#include "leat/agent/public_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

namespace leat {
namespace {

TEST(PublicTextTest, LeavesWordsOfAnyLanguageAsTheyAre) {
  for (const std::string text :
       {"", "resnet 50", "größe 字 🐎", "/data/a?b@c", "a: b // c"}) {
    EXPECT_EQ(public_text(text), text);
  }
}

TEST(PublicTextTest, TakesCredentialsOutOfUrls) {
  EXPECT_EQ(public_text("https://user:pass@host:8080/a/b?X-Amz-Signature=s#f"),
            "https://host:8080/a/b");
  EXPECT_EQ(public_text("s3://AKIA:se/c?r#et@bucket/train"),
            "s3://bucket/train");
  EXPECT_EQ(public_text("s3://token@bucket/train"), "s3://bucket/train");
  EXPECT_EQ(public_text("az://c/a@b?sig=1 and 'gs://d/e?f' (http://g?h)"),
            "az://c/a@b and 'gs://d/e' (http://g)");
  EXPECT_EQ(public_text("https://a:b@"), "https://");
  EXPECT_EQ(public_text("cache+https://s3://key:secret@b/c"),
            "cache+https://b/c");
}

TEST(PublicTextTest, KeepsTheContainerOfAnAzureUrl) {
  const std::string url = "abfss://photos@ada.dfs.core.windows.net";
  EXPECT_EQ(public_text(url), url);
  EXPECT_EQ(public_text(url + "/train/a@b?sig=1"), url + "/train/a@b");
  EXPECT_EQ(public_text("cache+" + url + ":443/x"), "cache+" + url + ":443/x");
  EXPECT_EQ(public_text("(" + url + ")"), "(" + url + ")");

  EXPECT_EQ(public_text("abfss://ada:se/cret@host/x"), "abfss://host/x");
  EXPECT_EQ(public_text("abfss://ada:1234@host/x"), "abfss://host/x");
  EXPECT_EQ(public_text("abfss://a@b@host/x"), "abfss://host/x");
  EXPECT_EQ(public_text("xabfss://token@host/x"), "xabfss://host/x");
}

TEST(PublicTextTest, LetsNoTerminalOrReaderBeCommanded) {
  EXPECT_EQ(public_text("a\x1b[2Jb\nc\x7f"), "a\uFFFD[2Jb\uFFFDc\uFFFD");
  EXPECT_EQ(public_text("\u009b31m"), "\uFFFD31m");
  EXPECT_EQ(public_text("evil\u202Etxt\u2066\u2028"),
            "evil\uFFFDtxt\uFFFD\uFFFD");
  EXPECT_EQ(public_text(std::string_view("\0", 1)), "\uFFFD");
}

TEST(PublicTextTest, ReplacesWhatIsNoUtf8) {
  EXPECT_EQ(public_text("\x80"), "\uFFFD");
  EXPECT_EQ(public_text("\xC0\xAF"), "\uFFFD\uFFFD");  // Longer than need be.
  EXPECT_EQ(public_text("\xE0\x80\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(public_text("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");  // A surrogate.
  EXPECT_EQ(public_text("\xF4\x90\x80\x80").size(), 12u);  // Past U+10FFFF.
  EXPECT_EQ(public_text("a\xE2\x82"), "a\uFFFD\uFFFD");    // Cut off.
}

TEST(PublicTextTest, CutsBetweenCharacters) {
  const std::string fits(kMostPublicBytes, 'x');
  EXPECT_EQ(public_text(fits), fits);

  const std::string cut = public_text(fits + "x");
  EXPECT_EQ(cut.size(), kMostPublicBytes);
  EXPECT_TRUE(cut.ends_with("x\u2026"));

  std::string wide;
  while (wide.size() < 2 * kMostPublicBytes) wide += "字";
  EXPECT_TRUE(public_text(wide).ends_with("字\u2026"));
}

TEST(PublicTextTest, OfAnyBytesMakesUtf8) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 600, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());

    const std::string shown = public_text(bytes);

    EXPECT_LE(shown.size(), kMostPublicBytes);
    EXPECT_NO_THROW((void)nlohmann::json(shown).dump()) << round;
  }
}

}  // namespace
}  // namespace leat
