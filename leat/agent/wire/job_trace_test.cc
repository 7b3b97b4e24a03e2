#include "leat/agent/wire/job_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "leat/agent/wire/messages.h"

namespace leat {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();

JobTrace trace_of(std::size_t steps, std::size_t samples) {
  JobTrace trace{.begin_seconds = 1'800'000'000.5};
  for (std::size_t i = 0; i < steps; ++i) {
    TraceStep step{.epoch = 1,
                   .step = i,
                   .size = samples,
                   .ready = 10 + i,
                   .asked = 11 + i,
                   .given = 12 + i};
    for (std::size_t s = 0; s < samples; ++s) {
      step.samples.push_back({.id = kLargest - s,
                              .reserved = 1,
                              .fetched = 2,
                              .decoded = 3,
                              .finished = 4,
                              .cache_begin = 5,
                              .cache_end = 6});
    }
    trace.steps.push_back(step);
  }
  return trace;
}

std::string without_end(std::string line) {
  line.pop_back();
  return line;
}

TEST(JobTrace, IsReadAsItWasSaid) {
  const JobTrace said = trace_of(3, 2);

  const auto read = parse_loader_line(without_end(line_of(said)));

  ASSERT_TRUE(read) << read.error().message();
  ASSERT_TRUE(read->trace);
  EXPECT_EQ(*read->trace, said);
  EXPECT_FALSE(read->rates);
  EXPECT_FALSE(read->registration);
}

TEST(JobTrace, OfTooManyStepsTheLatestAreSaidAndOfSamplesTheFirst) {
  const auto read = parse_loader_line(without_end(line_of(trace_of(20, 30))));

  ASSERT_TRUE(read && read->trace);
  ASSERT_EQ(read->trace->steps.size(), JobTrace::kMostSteps);
  EXPECT_EQ(read->trace->steps.front().step, 20 - JobTrace::kMostSteps);
  EXPECT_EQ(read->trace->steps.back().step, 19u);
  ASSERT_EQ(read->trace->steps.back().samples.size(), TraceStep::kMostSamples);
  EXPECT_EQ(read->trace->steps.back().samples.front().id, kLargest);
}

TEST(JobTrace, TheLongestFitsALine) {
  JobTrace trace = trace_of(JobTrace::kMostSteps, TraceStep::kMostSamples);
  for (TraceStep& step : trace.steps) {
    step.epoch = step.step = step.size = kLargest;
    step.ready = step.asked = step.given = kLargest;
    for (TraceSample& sample : step.samples) {
      sample = {kLargest, kLargest, kLargest, kLargest,
                kLargest, kLargest, kLargest};
    }
  }

  const std::string line = line_of(trace);

  EXPECT_LE(line.size(), kMostLineBytes);
  ASSERT_TRUE(parse_loader_line(without_end(line)));
}

TEST(JobTrace, WhatCannotBeIsRefusedByName) {
  const std::string step =
      R"("epoch":0,"step":1,"size":2,"ready":3,"asked":4,"given":5)";
  const auto message = [](const std::string& trace) {
    const auto read = parse_loader_line(R"({"trace":)" + trace + "}");
    return read ? "" : read.error().message();
  };
  const auto with = [&](const std::string& samples) {
    return R"({"begin_seconds":1,"steps":[{)" + step + R"(,"samples":)" +
           samples + "}]}";
  };

  EXPECT_EQ(message(with("[[1,2,3,4,5,6,7]]")), "");
  EXPECT_THAT(message("7"), HasSubstr("no object"));
  EXPECT_THAT(message("{}"), HasSubstr("begin_seconds"));
  EXPECT_THAT(message(R"({"begin_seconds":-1,"steps":[]})"),
              HasSubstr("begin_seconds"));
  EXPECT_THAT(message(R"({"begin_seconds":1})"), HasSubstr("steps"));
  EXPECT_THAT(message(R"({"begin_seconds":1,"steps":[{}]})"),
              HasSubstr("epoch is missing"));
  EXPECT_THAT(message(with("[1]")), HasSubstr("row of numbers"));
  EXPECT_THAT(message(with("[[1,2,3,4,5,6]]")), HasSubstr("row of numbers"));
  EXPECT_THAT(message(with("[[1,-2,3,4,5,6,7]]")), HasSubstr("reserved"));
  EXPECT_THAT(message(with("[[1,2,3,4,5,6,10000000000]]")),
              HasSubstr("cache_end is past"));
  std::string many = "[[1,2,3,4,5,6,7]";
  for (std::size_t i = 0; i < TraceStep::kMostSamples; ++i) {
    many += ",[1,2,3,4,5,6,7]";
  }
  EXPECT_THAT(message(with(many + "]")), HasSubstr("samples must be a list"));
}

TEST(JobTrace, AnAgentAsksForIt) {
  const auto asked = parse_agent_line(without_end(trace_request_line()));
  ASSERT_TRUE(asked) << asked.error().message();
  EXPECT_TRUE(asked->wants_trace);
  EXPECT_FALSE(asked->share);

  EXPECT_FALSE(parse_agent_line(R"({"trace":{}})"));
}

}  // namespace
}  // namespace leat
