#include "leat/plan/peer_memory.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace leat {
namespace {

/// How many of them the servers have at the second asking.
std::uint64_t held(PeerServers& servers, std::uint64_t samples) {
  for (std::uint64_t i = 0; i < samples; ++i) servers.find(SampleId{i});
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; i < samples; ++i) {
    found += servers.find(SampleId{i}).has_value() ? 1 : 0;
  }
  return found;
}

TEST(PeerServersTest, WhoAsksFirstBringsIt) {
  PeerServers servers({.bytes = 10000, .servers = 2}, 10, {100});

  EXPECT_FALSE(servers.find(SampleId{3}).has_value());
  EXPECT_TRUE(servers.find(SampleId{3}).has_value());
  EXPECT_EQ(servers.find(SampleId{3}), servers.find(SampleId{3}));
  EXPECT_FALSE(servers.find(SampleId{4}).has_value());
}

TEST(PeerServersTest, HoldsNineTenthsOfItsMemory) {
  constexpr std::uint64_t kSamples = 100000;
  PeerServers servers({.bytes = 2000000, .servers = 2}, kSamples, {100});

  // 3.6 MB of 10 MB; a draw of this many samples is within 1 % of it.
  EXPECT_NEAR(static_cast<double>(held(servers, kSamples)), .36 * kSamples,
              .01 * kSamples);
}

TEST(PeerServersTest, SizesAreCountedOneByOne) {
  constexpr std::uint64_t kSamples = 1000;
  std::vector<std::uint64_t> sizes(kSamples, 10);
  sizes.back() = 990000;  // 99 % of the bytes.
  PeerServers servers({.bytes = 1000000, .servers = 1}, kSamples, sizes);

  EXPECT_NEAR(static_cast<double>(held(servers, kSamples)), .9 * kSamples,
              .05 * kSamples);
}

TEST(PeerServersTest, NoMemoryHoldsNothing) {
  PeerServers servers({.bytes = 0, .servers = 3}, 1000, {100});

  EXPECT_EQ(held(servers, 1000), 0u);
}

TEST(PeerServersTest, EachServerHasItsShare) {
  constexpr std::uint64_t kSamples = 30000;
  PeerServers servers({.bytes = 1 << 30, .servers = 3}, kSamples, {1});
  std::array<int, 3> of_server{};
  for (std::uint64_t i = 0; i < kSamples; ++i) servers.find(SampleId{i});
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    ++of_server.at(*servers.find(SampleId{i}));
  }

  for (const int samples : of_server) EXPECT_NEAR(samples, 10000, 500);
}

RC_GTEST_PROP(PeerServersProperty, MoreMemoryHoldsTheSameAndMore, ()) {
  const auto servers = *rc::gen::inRange<std::uint32_t>(1, 9);
  const auto bytes = *rc::gen::inRange<std::uint64_t>(0, 20000);
  const auto more = bytes + *rc::gen::inRange<std::uint64_t>(0, 20000);
  PeerServers small({bytes, servers}, 100, {100});
  PeerServers large({more, servers}, 100, {100});
  held(small, 100);
  held(large, 100);

  for (std::uint64_t i = 0; i < 100; ++i) {
    const auto there = small.find(SampleId{i});
    if (there.has_value()) RC_ASSERT(large.find(SampleId{i}) == there);
  }
}

}  // namespace
}  // namespace leat
