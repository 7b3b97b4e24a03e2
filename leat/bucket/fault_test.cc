#include "leat/bucket/fault.h"

#include <gtest/gtest.h>

namespace leat {
namespace {

using Kind = Fault::Kind;
constexpr FaultQuestion kGet{
    .method = "GET", .bucket = "b", .key = "photos/1.jpg", .range = ""};

Fault status(int status) {
  return Fault{.kind = Kind::kStatus, .status = status};
}

FaultInjector scripted(std::string_view text) {
  auto script = parse_fault_script(text);
  EXPECT_TRUE(script) << script.error().message();
  return FaultInjector(/*seed=*/1, {}, *std::move(script));
}

/// The outcomes of this many equal requests: 'x' for a fault, '.' for none.
std::string fates(FaultInjector& injector, int count,
                  const FaultQuestion& question = kGet) {
  std::string fates;
  for (int i = 0; i < count; ++i) {
    fates += injector.draw(question).kind == Kind::kNone ? '.' : 'x';
  }
  return fates;
}

TEST(FaultTest, ReadsEveryKind) {
  EXPECT_EQ(*parse_fault("503"), status(503));
  EXPECT_EQ(parse_fault("reset")->kind, Kind::kReset);
  EXPECT_EQ(parse_fault("truncate")->kind, Kind::kTruncate);
  EXPECT_EQ(parse_fault("stall")->kind, Kind::kStall);
  EXPECT_EQ(parse_fault("trickle")->kind, Kind::kTrickle);
  EXPECT_EQ(parse_fault("flip")->kind, Kind::kFlip);
  EXPECT_EQ(parse_fault("slow:2s")->delay, std::chrono::seconds(2));
  EXPECT_EQ(parse_fault_rate("503:1%")->probability, 0.01);
  EXPECT_EQ(parse_fault_rate("slow:2s:0.5%")->fault.kind, Kind::kSlow);
}

TEST(FaultTest, RefusesWhatIsNone) {
  for (const char* text : {"", "200", "600", "50", "503x", "slow",
                           "slow:", "slow:x", "explode", "-503"}) {
    EXPECT_FALSE(parse_fault(text)) << text;
  }
  for (const char* text : {"503", "503:", "503:1", "503:-1%", "503:101%",
                           "503:nan%", ":1%", "503:1%%"}) {
    EXPECT_FALSE(parse_fault_rate(text)) << text;
  }
}

TEST(FaultInjectorTest, StrikesAboutAsOftenAsAsked) {
  FaultInjector injector(/*seed=*/7, {*parse_fault_rate("503:5%")}, {});
  int faults = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string key = std::to_string(i);
    faults += injector.draw({"GET", "b", key, ""}) == status(503) ? 1 : 0;
  }
  EXPECT_NEAR(faults, 1000, 100);
}

TEST(FaultInjectorTest, LuckDoesNotDependOnTheOrderOfRequests) {
  const std::vector<FaultRate> rates{*parse_fault_rate("503:50%")};
  const FaultQuestion other{"GET", "b", "other", ""};
  FaultInjector alone(/*seed=*/7, rates, {});
  FaultInjector mixed(/*seed=*/7, rates, {});
  const std::string expected = fates(alone, 64);

  std::string got;
  for (int i = 0; i < 64; ++i) {
    (void)mixed.draw(other);
    got += fates(mixed, 1);
  }

  EXPECT_EQ(got, expected);
  EXPECT_NE(expected.find('x'), std::string::npos);
  EXPECT_NE(expected.find('.'), std::string::npos);
  FaultInjector reseeded(/*seed=*/8, rates, {});
  EXPECT_NE(fates(reseeded, 64), expected);
}

TEST(FaultInjectorTest, TargetsBeyondThoseItRemembersHaveLuckToo) {
  const std::vector<FaultRate> rates{*parse_fault_rate("503:50%")};
  const FaultQuestion other{"GET", "b", "other", ""};
  FaultInjector alone(/*seed=*/7, rates, {});
  FaultInjector small(/*seed=*/7, rates, {}, /*most_targets=*/1);

  const std::string remembered = fates(small, 32);
  const std::string forgotten = fates(small, 64, other);

  EXPECT_EQ(remembered + fates(small, 32), fates(alone, 64));
  EXPECT_NE(forgotten.find('x'), std::string::npos);
  EXPECT_NE(forgotten.find('.'), std::string::npos);
}

TEST(FaultInjectorTest, FollowsItsScript) {
  auto injector = scripted("after 2 GET photos/ 503 x3");

  EXPECT_EQ(fates(injector, 8), "..xxx...");
}

TEST(FaultInjectorTest, ALineCountsOnlyWhatItMatches) {
  auto injector = scripted("after 1 GET photos/ 503");

  EXPECT_EQ(fates(injector, 2, {"GET", "b", "other/1", ""}), "..");
  EXPECT_EQ(fates(injector, 2, {"PUT", "b", "photos/1", ""}), "..");
  EXPECT_EQ(fates(injector, 3), ".x.");
}

TEST(FaultInjectorTest, APrefixMayNameTheBucket) {
  auto injector = scripted("after 0 * /b/ph 503 x*");

  EXPECT_EQ(fates(injector, 2), "xx");
  EXPECT_EQ(fates(injector, 2, {"GET", "c", "photos/1", ""}), "..");
}

TEST(FaultInjectorTest, EveryLineCountsAndTheFirstStrikes) {
  auto injector =
      scripted("# two lines\n\nafter 0 GET * 500 x1\nafter 1 GET * 503 x1\n");

  EXPECT_EQ(injector.draw(kGet), status(500));
  EXPECT_EQ(injector.draw(kGet), status(503));
  EXPECT_EQ(injector.draw(kGet).kind, Kind::kNone);
}

TEST(FaultInjectorTest, ALineMayBeLeftToChance) {
  auto injector = scripted("after 0 GET * 503 x* 50%");
  const std::string got = fates(injector, 200);

  EXPECT_NEAR(double(std::count(got.begin(), got.end(), 'x')), 100, 30);
}

TEST(FaultScriptTest, SaysWhichLineIsWrong) {
  for (const char* text :
       {"before 1 GET a 503", "after x GET a 503", "after 1 FETCH a 503",
        "after 1 GET a", "after 1 GET a oops", "after 1 GET a 503 3",
        "after 1 GET a 503 x-1", "after -1 GET a 503"}) {
    const auto script =
        parse_fault_script("after 1 GET a 503\n" + std::string(text) + "\n");
    ASSERT_FALSE(script) << text;
    EXPECT_EQ(script.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_TRUE(script.error().message().starts_with("line 2 of")) << text;
  }
}

}  // namespace
}  // namespace leat
