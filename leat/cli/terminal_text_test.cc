// Keys and errors cannot write on a terminal.
#include "leat/cli/terminal_text.h"

#include <gtest/gtest.h>

#include <string>

namespace leat {
namespace {

TEST(TerminalTextTest, WhatATerminalObeysIsWrittenOut) {
  EXPECT_EQ(for_terminal("a\x1b[2J\r\n\t\x7f"), R"(a\x1b[2J\x0d\x0a\x09\x7f)");
  EXPECT_EQ(for_terminal(std::string("\0", 1)), R"(\x00)");
  EXPECT_EQ(for_terminal("\u009b31m"), R"(\xc2\x9b31m)");
  EXPECT_EQ(for_terminal("\u202egpj.\u2066\u200f"),
            R"(\xe2\x80\xaegpj.\xe2\x81\xa6\xe2\x80\x8f)");
}

TEST(TerminalTextTest, OtherTextStays) {
  for (const char* text : {"", "photos/a b.jpg", "Grüße/猫.jpg", "a\\b",
                           "…–\u00a0\u2030", "\xff\xe2\x80", "\xc2"}) {
    EXPECT_EQ(for_terminal(text), text);
    EXPECT_EQ(lines_for_terminal(text), text);
  }
}

TEST(TerminalTextTest, LinesStayWhereTheyAreOurs) {
  EXPECT_EQ(lines_for_terminal("no\n\tkey \x1b[2J"), "no\n\tkey \\x1b[2J");
}

}  // namespace
}  // namespace leat
