#include "leat/agent/wire/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace leat {
namespace {

using ::testing::HasSubstr;

std::string without_end(std::string line) {
  line.pop_back();
  return line;
}

TEST(WireTest, WhatIsSaidIsRead) {
  const WireRegistration said{.job = "j\"ob",
                              .name = "n",
                              .dataset = "s3://b",
                              .rank = 3,
                              .world_size = 8,
                              .local_ranks = 4,
                              .threads = 5,
                              .in_flight = 6,
                              .ram_bytes = 9,
                              .disk_bytes = 10,
                              .dataset_samples = 7,
                              .epochs = 3,
                              .shared_cache = "leat-ram-1"};
  const auto read = parse_loader_line(without_end(line_of(said)));
  ASSERT_TRUE(read) << read.error().message();
  ASSERT_TRUE(read->registration);
  EXPECT_EQ(read->registration->job, said.job);
  EXPECT_EQ(read->registration->rank, 3u);
  EXPECT_EQ(read->registration->ram_bytes, 9u);
  EXPECT_EQ(read->registration->disk_bytes, 10u);
  EXPECT_EQ(read->registration->dataset_samples, 7u);
  EXPECT_EQ(read->registration->epochs, 3u);
  EXPECT_EQ(read->registration->shared_cache, "leat-ram-1");

  const auto rates = parse_loader_line(
      without_end(line_of(WireRates{.samples = 2.5,
                                    .epochs = 2,
                                    .threads = 3,
                                    .stalled_dollars = 0.25,
                                    .gets = 4,
                                    .lists = 2,
                                    .request_dollars = 0.5,
                                    .stalls = {{"storage", 1.5}}})));
  ASSERT_TRUE(rates && rates->rates);
  EXPECT_EQ(rates->rates->samples, 2.5);
  EXPECT_EQ(rates->rates->epochs, 2);
  EXPECT_EQ(rates->rates->threads, 3);
  EXPECT_EQ(rates->rates->stalled_dollars, 0.25);
  EXPECT_EQ(rates->rates->gets, 4);
  EXPECT_EQ(rates->rates->lists, 2);
  EXPECT_EQ(rates->rates->request_dollars, 0.5);
  EXPECT_FALSE(rates->rates->transfer_dollars) << "is not known";
  EXPECT_EQ(rates->rates->stalls,
            (std::map<std::string, double>{{"storage", 1.5}}));

  Share share;
  share.threads = 4;
  share.bytes_per_second = 1000;
  share.ram_bytes = 0;
  share.disk_bytes = 5;
  const auto given = parse_agent_line(without_end(line_of(share)));
  ASSERT_TRUE(given && given->share);
  EXPECT_EQ(*given->share, share);
}

TEST(WireTest, PacesGoBothWaysAndWhatNothingBoundsIsLeftOut) {
  const Pace pace{.offered = 100, .reached = 50};
  const std::string rates = line_of(WireRates{.elsewhere = pace});
  EXPECT_EQ(rates.find("ceiling"), std::string::npos);
  const auto read = parse_loader_line(without_end(rates));
  ASSERT_TRUE(read && read->rates);
  EXPECT_EQ(read->rates->elsewhere, pace);

  const auto told = parse_agent_line(without_end(line_of(Share{}, pace)));
  ASSERT_TRUE(told);
  EXPECT_EQ(told->pace, pace);

  const auto none = parse_agent_line(without_end(line_of(Share{})));
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->pace);
  EXPECT_FALSE(parse_agent_line(R"({"share":{},"pace":7})"));
  EXPECT_FALSE(parse_agent_line(R"({"share":{},"pace":{"offered":-1}})"));
  EXPECT_FALSE(parse_agent_line(R"({"share":{},"pace":{"ceiling":"x"}})"));
}

TEST(WireTest, NamesAreCutAndNeedNoUtf8) {
  const WireRegistration said{.job = std::string(9000, 'x'),
                              .name = "\xff\xfe"};
  const std::string line = line_of(said);
  EXPECT_LT(line.size(), kMostLineBytes);
  const auto read = parse_loader_line(without_end(line));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->registration->job.size(), kMostNameBytes);
}

TEST(WireTest, SaysWhatIsWrong) {
  for (const auto& [line, says] :
       std::vector<std::pair<std::string, std::string>>{
           {"", "not JSON"},
           {"[1]", "not an object"},
           {"{}", "neither"},
           {R"({"leat":2,"register":{}})", "another version"},
           {R"({"leat":1,"register":{"job":3}})", "job must be a text"},
           {R"({"rates":{"elapsed_seconds":"1"}})", "elapsed_seconds"},
           {R"({"rates":{"elapsed_seconds":-1}})", "at least 0"}}) {
    const auto read = parse_loader_line(line);
    ASSERT_FALSE(read) << line;
    EXPECT_THAT(read.error().message(), HasSubstr(says));
  }
  EXPECT_FALSE(parse_agent_line(R"({"share":{"threads":0}})"));
  EXPECT_FALSE(parse_agent_line(R"({"share":{"threads":1.5}})"));
  EXPECT_FALSE(parse_agent_line(R"({"share":{"threads":-1}})"));
}

TEST(WireTest, LinesAreBounded) {
  LineReader reader;
  ASSERT_TRUE(reader.add("ab\nc"));
  EXPECT_EQ(reader.next(), "ab");
  EXPECT_EQ(reader.next(), std::nullopt);
  ASSERT_TRUE(reader.add("d\n"));
  EXPECT_EQ(reader.next(), "cd");
  ASSERT_TRUE(reader.add(std::string(kMostLineBytes, 'x')));
  EXPECT_FALSE(reader.add("y"));
}

}  // namespace
}  // namespace leat
