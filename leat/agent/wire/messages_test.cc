#include "leat/agent/wire/messages.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

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
                              .shared_cache = "leat-ram-1",
                              .buckets = {"s3://b", "https://c:80"}};
  const auto read = parse_loader_line(without_end(line_of(said)));
  ASSERT_TRUE(read) << read.error().message();
  ASSERT_TRUE(read->registration);
  EXPECT_EQ(read->registration->job, said.job);
  EXPECT_EQ(read->registration->name, "n");
  EXPECT_EQ(read->registration->dataset, "s3://b");
  EXPECT_EQ(read->registration->rank, 3u);
  EXPECT_EQ(read->registration->world_size, 8u);
  EXPECT_EQ(read->registration->local_ranks, 4u);
  EXPECT_EQ(read->registration->threads, 5u);
  EXPECT_EQ(read->registration->in_flight, 6u);
  EXPECT_EQ(read->registration->ram_bytes, 9u);
  EXPECT_EQ(read->registration->disk_bytes, 10u);
  EXPECT_EQ(read->registration->dataset_samples, 7u);
  EXPECT_EQ(read->registration->epochs, 3u);
  EXPECT_EQ(read->registration->shared_cache, "leat-ram-1");
  EXPECT_EQ(read->registration->buckets, said.buckets);

  Share share;
  share.threads = 4;
  share.in_flight = 11;
  share.bytes_per_second = 1000;
  share.ram_bytes = 0;
  share.disk_bytes = 5;
  const auto given = parse_agent_line(without_end(line_of(share)));
  ASSERT_TRUE(given && given->share);
  EXPECT_EQ(*given->share, share);
}

template <class Field>
struct Named {
  const char* name;
  Field field;
};

constexpr Named<double WireRates::*> kAlwaysSaid[] = {
    {"elapsed_seconds", &WireRates::elapsed_seconds},
    {"samples", &WireRates::samples},
    {"training_seconds", &WireRates::training_seconds},
    {"reads", &WireRates::reads},
    {"read_seconds", &WireRates::read_seconds},
    {"tasks", &WireRates::tasks},
    {"busy_seconds", &WireRates::busy_seconds},
    {"threads", &WireRates::threads},
    {"in_flight", &WireRates::in_flight}};
constexpr Named<std::optional<double> WireRates::*> kWhereKnown[] = {
    {"kept_bytes", &WireRates::kept_bytes},
    {"saved_seconds", &WireRates::saved_seconds},
    {"decoded_hits", &WireRates::decoded_hits}};
constexpr Named<const JobCounter*> kRequiredCounters[] = {
    {"wait_seconds", &counters::kWaitSeconds},
    {"read_bytes", &counters::kReadBytes},
    {"ram_hits", &counters::kRamHits},
    {"disk_hits", &counters::kDiskHits},
    {"peer_hits", &counters::kPeerHits},
    {"cache_misses", &counters::kCacheMisses},
    {"ram_bytes", &counters::kRamBytes},
    {"disk_bytes", &counters::kDiskBytes},
    {"stalled_dollars", &counters::kStalledDollars}};
constexpr Named<const JobCounter*> kOtherCounters[] = {
    {"gets", &counters::kGets},
    {"lists", &counters::kLists},
    {"request_dollars", &counters::kRequestDollars},
    {"transfer_dollars", &counters::kTransferDollars}};

std::vector<std::string> always_said() {
  std::vector<std::string> names;
  for (const auto& [name, field] : kAlwaysSaid) names.emplace_back(name);
  for (const auto& [name, row] : kRequiredCounters) names.emplace_back(name);
  return names;
}

std::vector<std::string> said_where_known() {
  std::vector<std::string> names;
  for (const auto& [name, field] : kWhereKnown) names.emplace_back(name);
  for (const auto& [name, row] : kOtherCounters) names.emplace_back(name);
  return names;
}

/// Every number of a message of rates, by the name that it must have there.
std::map<std::string, double> numbers_of(const WireRates& rates) {
  std::map<std::string, double> numbers;
  for (const auto& [name, field] : kAlwaysSaid) numbers[name] = rates.*field;
  for (const auto& [name, field] : kWhereKnown) {
    if (rates.*field) numbers[name] = *(rates.*field);
  }
  for (const auto& rows :
       {std::span<const Named<const JobCounter*>>(kRequiredCounters),
        std::span<const Named<const JobCounter*>>(kOtherCounters)}) {
    for (const auto& [name, row] : rows) {
      if (rates.totals.contains(row)) numbers[name] = rates.totals.at(row);
    }
  }
  return numbers;
}

/// A message of rates with all that is always said but `without`, and what
/// `more` is.
std::string rates_line(const std::string& without = "",
                       const std::string& more = R"("stalls":{})") {
  std::string line = R"({"rates":{)";
  double value = 1.5;
  for (const std::string& name : always_said()) {
    if (name != without) line += fmt::format(R"("{}":{},)", name, value);
    value += 1;
  }
  return line + more + "}}";
}

TEST(WireTest, EachRateHasItsNameInBothDirections) {
  std::string more = R"("epochs":7,"stalls":{"storage":0.5,"decode":1.5})";
  std::map<std::string, double> said;
  double value = 1.5;
  for (const std::string& name : always_said()) said[name] = value++;
  value = 100.25;
  for (const std::string& name : said_where_known()) {
    said[name] = value;
    more += fmt::format(R"(,"{}":{})", name, value++);
  }

  const auto read = parse_loader_line(rates_line("", more));

  ASSERT_TRUE(read) << read.error().message();
  ASSERT_TRUE(read->rates);
  const auto again = parse_loader_line(without_end(line_of(*read->rates)));
  ASSERT_TRUE(again && again->rates);
  EXPECT_EQ(numbers_of(*read->rates), said);
  EXPECT_EQ(numbers_of(*again->rates), said);
  EXPECT_EQ(again->rates->epochs, 7);
  EXPECT_EQ(again->rates->stalls,
            (std::map<std::string, double>{{"storage", 0.5}, {"decode", 1.5}}));
}

TEST(WireTest, NoTwoRatesHaveOneName) {
  std::set<std::string> names = {"epochs", "stalls"};
  for (const auto& [name, field] : kAlwaysSaid) names.insert(name);
  for (const auto& [name, field] : kWhereKnown) names.insert(name);
  for (const JobCounter* counter : job_counters()) {
    EXPECT_TRUE(names.insert(counter->name).second) << counter->name;
  }
}

TEST(WireTest, WhatWasNotAlwaysSaidMayBeMissingAndNothingElse) {
  const auto read = parse_loader_line(rates_line());
  ASSERT_TRUE(read && read->rates) << read.error().message();
  EXPECT_EQ(numbers_of(*read->rates).size(), always_said().size());
  for (const std::string& name : said_where_known()) {
    EXPECT_EQ(line_of(*read->rates).find(name), std::string::npos);
  }
  EXPECT_EQ(read->rates->epochs, 0);
  EXPECT_FALSE(read->rates->elsewhere);

  for (const std::string& name : always_said()) {
    const auto refused = parse_loader_line(rates_line(name));
    ASSERT_FALSE(refused) << name;
    EXPECT_THAT(refused.error().message(),
                HasSubstr(name + " must be a number"));
  }
  for (const std::string& name : said_where_known()) {
    for (const char* value : {"-1", "null", "\"1\"", "1e999"}) {
      EXPECT_FALSE(parse_loader_line(
          rates_line("", fmt::format(R"("stalls":{{}},"{}":{})", name, value))))
          << name << value;
    }
  }
  EXPECT_FALSE(parse_loader_line(rates_line("", R"("stalls":{},"epochs":-1)")));
}

TEST(WireTest, StallsAreAFewNumbers) {
  std::string many = R"("stalls":{"c0":1)";
  for (std::size_t i = 1; i < kMostStalls; ++i) {
    many += fmt::format(R"(,"c{}":1)", i);
  }
  EXPECT_TRUE(parse_loader_line(rates_line("", many + "}")));
  EXPECT_FALSE(parse_loader_line(rates_line("", many + R"(,"more":1})")));
  for (const std::string& wrong :
       {std::string(R"("stalls":[])"), std::string(R"("gets":1)"),
        std::string(R"("stalls":{"storage":-1})"),
        R"("stalls":{")" + std::string(kMostNameBytes + 1, 's') + R"(":1})"}) {
    EXPECT_FALSE(parse_loader_line(rates_line("", wrong))) << wrong;
  }
}

TEST(WireTest, ARegistrationIsCheckedKeyByKey) {
  const auto line = [](const std::string& key, const std::string& value) {
    std::string all = R"({"leat":1,"register":{"dataset":"s3://b","name":"n")";
    for (const char* name :
         {"job", "rank", "world_size", "local_ranks", "threads", "in_flight",
          "ram_bytes", "disk_bytes", "dataset_samples"}) {
      const std::string as = name == std::string("job") ? "\"j\"" : "4";
      if (name != key) all += fmt::format(R"(,"{}":{})", name, as);
    }
    if (!value.empty()) all += fmt::format(R"(,"{}":{})", key, value);
    return all + "}}";
  };
  ASSERT_TRUE(parse_loader_line(line("epochs", "2")));
  for (const char* name :
       {"rank", "world_size", "local_ranks", "threads", "in_flight",
        "ram_bytes", "disk_bytes", "dataset_samples"}) {
    const auto missing = parse_loader_line(line(name, ""));
    ASSERT_FALSE(missing) << name;
    EXPECT_THAT(missing.error().message(),
                HasSubstr(std::string(name) + " is missing"));
    for (const char* value : {"-1", "1.5", "\"1\"", "null"}) {
      EXPECT_FALSE(parse_loader_line(line(name, value))) << name << value;
    }
  }
  for (const char* name : {"rank", "world_size", "local_ranks"}) {
    EXPECT_TRUE(parse_loader_line(line(name, "4294967295"))) << name;
    EXPECT_FALSE(parse_loader_line(line(name, "4294967296"))) << name;
  }
  for (const char* name :
       {"world_size", "local_ranks", "threads", "in_flight"}) {
    EXPECT_FALSE(parse_loader_line(line(name, "0"))) << name;
  }
  EXPECT_FALSE(parse_loader_line(line("shared_cache", "7")));
  EXPECT_FALSE(parse_loader_line(line("epochs", "-1")));
  EXPECT_TRUE(parse_loader_line(line("buckets", "[]")));
  for (const char* value : {"7", "\"s3://b\"", "[7]", "{}"}) {
    EXPECT_FALSE(parse_loader_line(line("buckets", value))) << value;
  }
  std::string many = "[\"b\"";
  for (std::size_t i = 0; i < kMostBuckets; ++i) many += ",\"b\"";
  EXPECT_FALSE(parse_loader_line(line("buckets", many + "]")));
}

TEST(WireTest, AShareIsCheckedAndWhatItDoesNotSayIsNotSaid) {
  EXPECT_EQ(line_of(Share{}), "{\"share\":{}}\n");
  const auto none = parse_agent_line(R"({"share":{}})");
  ASSERT_TRUE(none && none->share);
  EXPECT_EQ(*none->share, Share{});
  for (const char* name : {"threads", "in_flight", "bytes_per_second",
                           "ram_bytes", "disk_bytes"}) {
    EXPECT_TRUE(
        parse_agent_line(fmt::format(R"({{"share":{{"{}":1}}}})", name)));
    EXPECT_FALSE(
        parse_agent_line(fmt::format(R"({{"share":{{"{}":-1}}}})", name)));
  }
  EXPECT_FALSE(parse_agent_line(R"({"share":{"in_flight":0}})"));
  const auto said = parse_agent_line(without_end(error_line("no room")));
  ASSERT_TRUE(said);
  EXPECT_EQ(said->error, "no room");
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
  const WireRegistration said{.job = std::string(2 * kMostLineBytes, 'x'),
                              .name = "\xff\xfe",
                              .buckets = std::vector<std::string>(
                                  100, std::string(2 * kMostNameBytes, 'b'))};
  const std::string line = line_of(said);
  EXPECT_LT(line.size(), kMostLineBytes);
  const auto read = parse_loader_line(without_end(line));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->registration->job.size(), kMostNameBytes);
  ASSERT_EQ(read->registration->buckets.size(), kMostBuckets);
  EXPECT_EQ(read->registration->buckets.back().size(), kMostNameBytes);
  EXPECT_LT(error_line(said.job).size(), kMostLineBytes);
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

  LineReader unread;
  const std::string lines(kMostLineBytes, '\n');
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(unread.add(lines));
  EXPECT_FALSE(unread.add(lines)) << "nobody took one of them";
}

}  // namespace
}  // namespace leat
