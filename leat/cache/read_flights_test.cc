#include "leat/cache/read_flights.h"

#include <gtest/gtest.h>

#include <utility>

namespace leat {
namespace {

ReadFlightRef flight_at(std::uint64_t key, std::uint64_t now) {
  auto flight = std::make_shared<ReadFlight>();
  flight->key = {.high = key, .low = ~key};
  flight->read.request.hint = ReadHint{.now = now};
  flight->read.done = [](const Result<void>&) {};
  return flight;
}

TEST(ReadFlightsTest, AReadOfWhatIsOnItsWayJoins) {
  ReadFlights flights;
  const ReadFlightRef first = flight_at(1, 10);
  ASSERT_TRUE(flights.begin(first));
  EXPECT_FALSE(flights.latest_joined(*first));

  EXPECT_FALSE(flights.begin(flight_at(1, 30)));
  EXPECT_FALSE(flights.begin(flight_at(1, 20)));

  EXPECT_EQ(flights.latest_joined(*first)->now, 30u);
  const std::vector<AwaitedRead> joined = flights.end(*first);
  ASSERT_EQ(joined.size(), 2u);
  EXPECT_EQ(joined[0].request.hint->now, 30u);
  EXPECT_EQ(joined[1].request.hint->now, 20u);
  EXPECT_EQ(latest_hint(joined).now, 30u);
}

TEST(ReadFlightsTest, ALaterReadAndAnotherRecordAreFlightsOfTheirOwn) {
  ReadFlights flights;
  const ReadFlightRef first = flight_at(1, 10);
  const ReadFlightRef other = flight_at(2, 10);
  ASSERT_TRUE(flights.begin(first));
  EXPECT_TRUE(flights.begin(other));
  EXPECT_TRUE(flights.end(*first).empty());

  const ReadFlightRef later = flight_at(1, 40);
  EXPECT_TRUE(flights.begin(later));

  EXPECT_TRUE(flights.end(*later).empty());
  EXPECT_TRUE(flights.end(*other).empty());
}

}  // namespace
}  // namespace leat
