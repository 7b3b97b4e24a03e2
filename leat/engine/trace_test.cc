#include "leat/engine/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <vector>

namespace leat {
namespace {

using std::chrono::milliseconds;

class TraceTest : public ::testing::Test {
 protected:
  TraceTest() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "leat-trace-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~TraceTest() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return (folder_ / "t.json").string(); }
  nlohmann::json read() const {
    std::stringstream text;
    text << std::ifstream(path()).rdbuf();
    return nlohmann::json::parse(text.str(), nullptr, false);
  }
  TimePoint at(int ms) const { return start_ + milliseconds(ms); }

  std::filesystem::path folder_;
  const TimePoint start_ = SteadyClock().now();
};

TEST_F(TraceTest, JoinsEachSampleFromItsFetchToItsStep) {
  auto trace = Trace::open(path(), 3);
  ASSERT_TRUE(trace) << trace.error().message();
  // Two that overlap, then one that fits behind the first.
  const SampleTimes first{at(0), at(10), at(12), at(13), {}};
  const SampleTimes second{
      at(5),
      at(20),
      at(21),
      at(25),
      {{.time = {at(6), at(8)}, .cause = Stall::kThrottled}}};
  const SampleTimes third{at(10), at(30), at(31), at(31), {}};
  const std::vector<TracedSample> two = {{SampleId{7}, &first},
                                         {SampleId{8}, &second}};
  const std::vector<TracedSample> one = {{SampleId{9}, &third}};

  (*trace)->add({.epoch = 1,
                 .step = 4,
                 .samples = two,
                 .ready = at(26),
                 .wait = {at(1), at(27)}});
  (*trace)->add({.epoch = 1,
                 .step = 5,
                 .samples = one,
                 .ready = at(32),
                 .wait = {at(40), at(41)}});
  (*trace)->end_epoch(at(50));
  (*trace)->end_epoch(at(60));  // An empty one has no step.
  trace->reset();

  const nlohmann::json json = read();
  ASSERT_TRUE(json.is_object());
  EXPECT_GT(json["baseTimeNanoseconds"].get<std::int64_t>(), 0);
  std::map<std::string, int> slices;
  std::map<std::int64_t, std::multiset<std::string>> arrows;
  std::map<std::int64_t, std::vector<std::pair<double, double>>> by_thread;
  for (const auto& event : json["traceEvents"]) {
    const std::string phase = event["ph"];
    if (phase == "X") {
      ++slices[event["name"]];
      const double from = event["ts"];
      if (event["name"] != "throttled" && event["name"] != "transform") {
        by_thread[event["tid"]].emplace_back(from,
                                             from + event["dur"].get<double>());
      }
    } else if (phase != "M") {
      arrows[event["id"]].insert(phase);
    }
  }
  EXPECT_EQ(slices, (std::map<std::string, int>{{"batch", 2},
                                                {"decode", 3},
                                                {"fetch", 3},
                                                {"step", 2},
                                                {"throttled", 1},
                                                {"transform", 2},
                                                {"wait", 2}}));
  // Samples have three ends, batches two.
  EXPECT_EQ(arrows.size(), 5u);
  for (const auto& [id, phases] : arrows) {
    EXPECT_TRUE(phases == (std::multiset<std::string>{"f", "s", "t"}) ||
                phases == (std::multiset<std::string>{"f", "s"}))
        << id;
  }
  for (auto& [tid, times] : by_thread) {
    std::ranges::sort(times);
    for (std::size_t i = 1; i < times.size(); ++i) {
      EXPECT_LE(times[i - 1].second, times[i].first + 1e-3) << tid;
    }
  }
}

TEST_F(TraceTest, ASampleWhoseBytesWereThereHasNoFetchAndAllItsArrows) {
  auto trace = Trace::open(path(), 0);
  ASSERT_TRUE(trace);
  const TimePoint just_under = at(1) + std::chrono::nanoseconds(999);
  const TimePoint just_over = at(1) + std::chrono::nanoseconds(1000);
  const SampleTimes there{at(1), just_under, at(2), at(3), {}};
  const SampleTimes fetched{at(1), just_over, at(2), at(3), {}};
  const std::vector<TracedSample> samples = {{SampleId{7}, &there},
                                             {SampleId{8}, &fetched}};

  (*trace)->add({.samples = samples, .ready = at(4), .wait = {at(4), at(5)}});
  trace->reset();

  std::vector<nlohmann::json> events;
  const nlohmann::json json = read();
  for (const auto& event : json["traceEvents"]) {
    if (event["ph"] != "M") events.push_back(event);
  }
  std::ranges::stable_sort(events, {}, [](const nlohmann::json& event) {
    return event["ts"].get<double>();
  });
  // The last slice of each thread that began: an arrow there belongs to it.
  std::map<std::int64_t, std::string> slice_at;
  std::multiset<std::string> joined;
  std::vector<std::uint64_t> with_fetch;
  for (const auto& event : events) {
    const std::string phase = event["ph"];
    if (phase == "X") {
      slice_at[event["tid"]] = event["name"];
      if (event["name"] == "fetch")
        with_fetch.push_back(event["args"]["sample"]);
    } else {
      joined.insert(phase + " " + slice_at[event["tid"]]);
    }
  }
  EXPECT_THAT(with_fetch, ::testing::ElementsAre(8));
  EXPECT_EQ(joined, (std::multiset<std::string>{"f batch", "f batch", "f wait",
                                                "s batch", "s decode",
                                                "s fetch", "t decode"}));
}

TEST_F(TraceTest, TheArrowOfASamplePassesThroughTheCachesThatItWasIn) {
  auto trace = Trace::open(path(), 0);
  ASSERT_TRUE(trace);
  const SampleTimes hit{
      at(0), at(5), at(6), at(6), {{{at(1), at(5)}, Stall::kCacheIo}}};
  const SampleTimes brought{at(0),
                            at(9),
                            at(10),
                            at(10),
                            {{{at(1), at(2)}, Stall::kPeer},
                             {{at(3), at(4)}, Stall::kThrottled},
                             {{at(8), at(9)}, Stall::kCacheIo}}};
  const std::vector<TracedSample> samples = {{SampleId{7}, &hit},
                                             {SampleId{8}, &brought}};

  (*trace)->add({.samples = samples, .ready = at(11), .wait = {at(0), at(12)}});
  trace->reset();

  std::vector<nlohmann::json> events;
  const nlohmann::json json = read();
  for (const auto& event : json["traceEvents"]) {
    if (event["ph"] != "M") events.push_back(event);
  }
  std::ranges::stable_sort(events, {}, [](const nlohmann::json& event) {
    return event["ts"].get<double>();
  });
  // An arrow belongs to the slice that began last on its thread.
  std::map<std::int64_t, std::string> slice_at;
  std::map<std::int64_t, std::string> ways;
  for (const auto& event : events) {
    if (event["ph"] == "X") {
      slice_at[event["tid"]] = event["name"];
    } else {
      ways[event["id"]] += slice_at[event["tid"]] + " ";
    }
  }
  std::multiset<std::string> seen;
  for (const auto& [id, way] : ways) seen.insert(way);
  EXPECT_EQ(seen, (std::multiset<std::string>{"fetch cache decode batch ",
                                              "fetch peer cache decode batch ",
                                              "wait batch "}));
}

TEST_F(TraceTest, ATransformTooShortToBeSeenIsToldAndNotDrawn) {
  auto trace = Trace::open(path(), 0);
  ASSERT_TRUE(trace);
  const auto after = [&](std::int64_t ns) { return at(2) + Nanoseconds(ns); };
  const SampleTimes brief{at(0), at(1), at(2), after(9'999), {}};
  const SampleTimes longer{at(0), at(1), at(2), after(10'000), {}};
  const SampleTimes none{at(0), at(1), at(2), at(2), {}};
  const std::vector<TracedSample> samples = {
      {SampleId{7}, &brief}, {SampleId{8}, &longer}, {SampleId{9}, &none}};

  (*trace)->add({.samples = samples, .ready = at(4), .wait = {at(4), at(5)}});
  trace->reset();

  std::map<std::uint64_t, nlohmann::json> decodes;
  std::vector<double> drawn;
  const nlohmann::json json = read();
  for (const auto& event : json["traceEvents"]) {
    if (event["name"] == "decode") {
      decodes[event["args"]["sample"]] = event["args"];
    } else if (event["name"] == "transform") {
      drawn.push_back(event["dur"]);
    }
  }
  ASSERT_EQ(decodes.size(), 3u);
  EXPECT_EQ(decodes[7].value("transform_us", 0.0), 9.999);
  EXPECT_FALSE(decodes[8].contains("transform_us"));
  EXPECT_FALSE(decodes[9].contains("transform_us"));
  EXPECT_THAT(drawn, ::testing::ElementsAre(10.0));
}

TEST_F(TraceTest, OfVeryManySamplesSomeAreDrawnAndTheOneThatAllWaitedFor) {
  constexpr std::uint64_t kBatch = 256;
  constexpr std::uint64_t kBatches = 100;  // 256,000 samples a second.
  constexpr std::uint64_t kLast = 77;
  auto trace = Trace::open(path(), 0);
  ASSERT_TRUE(trace);
  for (std::uint64_t step = 0; step < kBatches; ++step) {
    const int now = static_cast<int>(step);
    const SampleTimes one{at(now - 2), at(now - 1), at(now), at(now), {}};
    const SampleTimes late{at(now - 2), at(now), at(now + 1), at(now + 1), {}};
    std::vector<TracedSample> samples;
    for (std::uint64_t i = 0; i < kBatch; ++i) {
      samples.push_back(
          {SampleId{step * kBatch + i}, i == kLast ? &late : &one});
    }
    (*trace)->add({.step = step,
                   .samples = samples,
                   .ready = at(now + 1),
                   .wait = {at(now), at(now + 1)}});
  }
  trace->reset();

  std::map<std::uint64_t, std::uint64_t> drawn;  // By step.
  std::map<std::uint64_t, std::uint64_t> told;
  std::set<std::uint64_t> late;
  std::map<std::int64_t, std::multiset<std::string>> arrows;
  const nlohmann::json json = read();
  for (const auto& event : json["traceEvents"]) {
    if (event["name"] == "batch") {
      told[event["args"]["step"]] = event["args"].value("drawn", kBatch);
      EXPECT_EQ(event["args"].value("samples", kBatch), kBatch);
    } else if (event["name"] == "decode") {
      const std::uint64_t sample = event["args"]["sample"];
      ++drawn[sample / kBatch];
      if (sample % kBatch == kLast) late.insert(sample / kBatch);
    } else if (event.contains("id")) {
      arrows[event["id"]].insert(event["ph"]);
    }
  }
  EXPECT_EQ(drawn, told);
  EXPECT_EQ(drawn[0], kBatch);
  EXPECT_EQ(drawn[kBatches - 1], 5u) << "5,000 a second";
  EXPECT_EQ(late.size(), kBatches);
  for (const auto& [id, phases] : arrows) {
    EXPECT_TRUE(phases.contains("s") && phases.contains("f")) << id;
  }
}

TEST_F(TraceTest, IsWholeAtAnyTime) {
  auto trace = Trace::open(path(), 0);
  ASSERT_TRUE(trace);
  EXPECT_TRUE(read().is_object());
  const SampleTimes times{at(0), at(1), at(2), at(3), {}};
  const std::vector<TracedSample> samples(50, {SampleId{1}, &times});
  for (int i = 0; i < 30; ++i) {  // More than twice what is kept back.
    (*trace)->add({.samples = samples, .ready = at(4), .wait = {at(4), at(5)}});
    std::ifstream file(path());
    ASSERT_TRUE(nlohmann::json::accept(file)) << i;
  }
  EXPECT_GT(std::filesystem::file_size(path()), 2u * (256 << 10));
}

TEST_F(TraceTest, NamesTheFileThatCannotBeMade) {
  const auto trace = Trace::open((folder_ / "no" / "t.json").string(), 0);

  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().code(), ErrorCode::kNotFound);
  EXPECT_THAT(trace.error().message(), ::testing::HasSubstr("no/t.json"));
}

}  // namespace
}  // namespace leat
