#include "leat/tune/observation.h"

#include <gtest/gtest.h>

namespace leat {
namespace {

TEST(Observation, IsReadAsItWasWritten) {
  Observation written;
  written.at_seconds = 1.25;
  written.samples = 7;
  written.read_seconds = 0.1;
  written.busy_seconds = 3;
  written.threads = 3;
  written.in_flight = 17;
  written.most_threads = 9;
  written.most_in_flight = 512;
  written.cores = 1.5;
  written.memory_bytes = std::uint64_t{3} << 40;

  const Result<Observation> read = parse_observation(to_json(written));

  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(*read, written);
}

TEST(Observation, WhatIsMissingIsAsUsualAndWhatIsUnknownIsPassedOver) {
  const Result<Observation> read =
      parse_observation(R"({"at_seconds": 2, "of_another_version": [1]})");

  ASSERT_TRUE(read);
  EXPECT_EQ(read->at_seconds, 2);
  EXPECT_EQ(read->threads, 1u);
}

TEST(Observation, WhatCannotBeIsRefusedByName) {
  const auto message = [](std::string_view line) {
    const Result<Observation> read = parse_observation(line);
    return read ? "" : read.error().message();
  };
  EXPECT_NE(message("[]").find("not a JSON object"), std::string::npos);
  EXPECT_NE(message("{\"a").find("not a JSON object"), std::string::npos);
  EXPECT_NE(message(R"({"reads": -1})").find("\"reads\""), std::string::npos);
  EXPECT_NE(message(R"({"reads": 1e300})").find("\"reads\""),
            std::string::npos);
  EXPECT_NE(message(R"({"reads": "7"})").find("\"reads\""), std::string::npos);
  EXPECT_NE(message(R"({"threads": 0})").find("\"threads\""),
            std::string::npos);
  EXPECT_NE(message(R"({"threads": 0.4})").find("\"threads\""),
            std::string::npos);
  EXPECT_NE(message(R"({"cores": 0})").find("\"cores\""), std::string::npos);
}

}  // namespace
}  // namespace leat
