#include "leat/serve/asked_host.h"

#include <gtest/gtest.h>

namespace leat {
namespace {

TEST(AskedHostTest, IsAnAddressOrAKnownName) {
  for (const char* host : {"127.0.0.1", "127.0.0.1:80", "[::1]:80", "localhost",
                           "LOCALHOST:9000", "10.1.2.3:1", "known.net:1"}) {
    EXPECT_TRUE(may_ask_for(host, {"known.net"})) << host;
  }
  for (const char* host :
       {"", "evil.example", "evil.example:9000", "localhost.", "localhost:x",
        "127.0.0.1.evil.example", "[evil]", "127.0.0.1:80:80",
        "known.net.evil"}) {
    EXPECT_FALSE(may_ask_for(host, {"known.net"})) << host;
  }
}

TEST(AskedHostTest, ForeignPagesAreTold) {
  const auto from = [](std::string_view origin) {
    RequestHead head;
    head.headers = {{"Host", "127.0.0.1:9000"}};
    if (!origin.empty()) head.headers.emplace_back("Origin", origin);
    return is_of_own_page(head);
  };

  EXPECT_TRUE(from(""));
  EXPECT_TRUE(from("http://127.0.0.1:9000"));
  for (const char* origin :
       {"null", "http://evil.example", "http://127.0.0.1",
        "http://127.0.0.1:9001", "http://localhost:9000", "127.0.0.1:9000"}) {
    EXPECT_FALSE(from(origin)) << origin;
  }
}

}  // namespace
}  // namespace leat
