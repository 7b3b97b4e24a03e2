#include "leat/tune/explain.h"

#include <gtest/gtest.h>

namespace leat {
namespace {

Observation settings() {
  Observation now;
  now.threads = 2;
  now.in_flight = 8;
  now.cores = 4;
  now.memory_bytes = 1 << 30;
  return now;
}

/// 8 requests of 20 ms carry 400/s; 2 threads of 1 ms 2,000/s.
StageRates bound_by_requests() {
  StageRates rates;
  rates.seconds = 1;
  rates.samples = 400;
  rates.samples_per_second = 400;
  rates.wait_share = 1;
  rates.storage_share = 1;
  rates.reads_per_sample = 1;
  rates.latency_seconds = 0.02;
  rates.mean_in_flight = 8;
  rates.bytes_per_read = 1e5;
  rates.tasks_per_sample = 1;
  rates.task_seconds = 0.001;
  rates.task_cpu_seconds = 0.001;
  rates.mean_busy_threads = 0.4;
  return rates;
}

TEST(Explain, RequestsAreTheBottleneckAndOneMoreBuysItsPart) {
  const Explanation found = explain(bound_by_requests(), settings(), {});

  EXPECT_EQ(found.bottleneck, Bottleneck::kRequests);
  EXPECT_NE(found.reason.find("8.0 of 8 requests in flight, 20.0 ms"),
            std::string::npos)
      << found.reason;
  EXPECT_NEAR(found.headroom.value(), 0, 1e-9);
  EXPECT_NEAR(found.next[0].gain.value(), 0, 1e-9);        // A core.
  EXPECT_NEAR(found.next[1].gain.value(), 1.0 / 8, 1e-9);  // A connection.
  EXPECT_FALSE(found.next[2].gain);  // How much data there is, is not known.
}

TEST(Explain, NeverTellsOfMoreRequestsThanMayBeInFlight) {
  StageRates rates = bound_by_requests();
  rates.mean_in_flight = 373.3;  // Those that wait for each other end at once.

  const Explanation found = explain(rates, settings(), {});

  EXPECT_NE(found.reason.find("8.0 of 8 requests"), std::string::npos)
      << found.reason;
  EXPECT_EQ(found.stages[0].used, 8);
}

TEST(Explain, AShareOfBandwidthThatIsReadWholeIsTheBottleneck) {
  Observation now = settings();
  now.data_bytes = std::uint64_t{4} << 30;
  now.most_bytes_per_second = 41'000'000;
  StageRates rates = bound_by_requests();  // 40 MB/s.
  rates.mean_in_flight = 2;
  rates.latency_seconds = 0.005;

  const Explanation found = explain(rates, now, {});

  EXPECT_EQ(found.bottleneck, Bottleneck::kBandwidth);
  EXPECT_EQ(found.reason,
            "38.1 MiB/s of the 39.1 MiB/s that the agent of this node allows");
  EXPECT_NEAR(found.headroom.value(), 0, 1e-9);
  EXPECT_NEAR(found.next[1].gain.value(), 0, 1e-9);            // A connection.
  EXPECT_NEAR(found.next[2].gain.value(), 4.0 / 3 - 1, 1e-9);  // A gibibyte.
  now.most_bytes_per_second = 60'000'000;
  EXPECT_EQ(explain(rates, now, {}).bottleneck, Bottleneck::kLookahead);
}

TEST(Explain, AGibibyteBuysTheReadsThatItSaves) {
  Observation now = settings();
  now.data_bytes = std::uint64_t{4} << 30;

  EXPECT_NEAR(explain(bound_by_requests(), now, {}).next[2].gain.value(),
              4.0 / 3 - 1, 1e-9);

  StageRates rates = bound_by_requests();
  rates.hit_share = 0.5;  // Half of the rest is half a gibibyte more.
  EXPECT_NEAR(explain(rates, now, {}).next[2].gain.value(), 1, 1e-9);
}

TEST(Explain, BottlenecksByWhatIsFull) {
  struct Row {
    double wait, memory, threads, requests, cpu;
    bool knows_store;
    Bottleneck expected;
  };
  for (const Row& row : {
           Row{0.01, 0, 2, 8, 0, false, Bottleneck::kTraining},
           Row{1, 0, 1.9, 2, 0.001, false, Bottleneck::kThreads},
           Row{1, 0, 0.3, 7.9, 0.001, false, Bottleneck::kRequests},
           Row{1, 0, 0.3, 7.9, 0.001, true, Bottleneck::kStore},
           Row{1, 0, 1.9, 2, 0.0095, false, Bottleneck::kCores},
           Row{1, 0.8, 0.5, 3, 0.001, false, Bottleneck::kMemory},
           Row{1, 0, 0.5, 3, 0.001, false, Bottleneck::kLookahead},
       }) {
    StageRates rates = bound_by_requests();
    rates.wait_share = row.wait;
    rates.memory_share = row.memory;
    rates.mean_busy_threads = row.threads;
    rates.mean_in_flight = row.requests;
    rates.task_cpu_seconds = row.cpu;
    EXPECT_EQ(bottleneck_of(rates, settings(), row.knows_store), row.expected)
        << to_string(row.expected);
  }
}

TEST(Explain, HeadroomIsWhatIsLeftOnceTrainingIsOutOfTheWay) {
  StageRates rates = bound_by_requests();
  rates.samples_per_second = 100;
  rates.wait_share = 0;
  rates.training_rate = 100;

  const Explanation found = explain(rates, settings(), {});

  EXPECT_EQ(found.bottleneck, Bottleneck::kTraining);
  EXPECT_NEAR(found.headroom.value(), 3, 1e-9);
  EXPECT_NEAR(found.next[1].gain.value(), 0, 1e-9);
}

TEST(Explain, ReadsAsLinesAndAsJson) {
  const Explanation found = explain(bound_by_requests(), settings(), {});

  EXPECT_EQ(
      to_text(found),
      "400.0 samples/s; training waits 100 % of the time\n"
      "bottleneck: max_in_flight (8.0 of 8 requests in flight, 20.0 ms "
      "each, 38.1 MiB/s)\n"
      "headroom beyond this speed: 0 %\n"
      "  fetch         8.0 of 8      in use  up to 400.0 samples/s; 1.00 a "
      "sample, 20.00 ms each, 97.7 KiB\n"
      "  decode        0.4 of 2      in use  up to 2000.0 samples/s; 1.00 a "
      "sample, 1.00 ms each, 1.00 ms of a core\n"
      "  training      0.0 of 1      in use\n"
      "one more core: +0.0 %\n"
      "one more connection: +12.5 %\n"
      "one more GiB of cache: not known\n");
  EXPECT_NE(to_json(found).find(R"("bottleneck":"max_in_flight")"),
            std::string::npos);
  EXPECT_NE(to_json(found).find(R"("visits_per_sample":1.0,)"
                                R"("seconds_per_visit":0.02,)"
                                R"("cpu_seconds_per_visit":null,)"
                                R"("bytes_per_visit":100000.0)"),
            std::string::npos)
      << to_json(found);
  EXPECT_NE(to_json(found).find(R"({"name":"GiB of cache","gain":null})"),
            std::string::npos);
}

}  // namespace
}  // namespace leat
