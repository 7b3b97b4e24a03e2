#include "leat/store/cloud/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <utility>

namespace leat {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::HasSubstr;
using Level = Diagnosis::Level;

class Place final : public CredentialProvider {
 public:
  explicit Place(Result<CredentialAnswer>&& answer)
      : answer_(std::move(answer)) {}
  std::string name() const override { return "a place"; }
  bool is_local() const override { return true; }
  Result<CredentialAnswer> fetch(std::stop_token) override { return answer_; }

 private:
  const Result<CredentialAnswer> answer_;
};

Diagnosis diagnose(Result<CredentialAnswer> answer) {
  Place place(std::move(answer));
  return diagnose_place(place, FakeClock(), "a guide", {});
}

CredentialAnswer token(std::optional<TimePoint> ends) {
  TimedCredentials found;
  found.keys.bearer_token = "PLANTED";
  found.expires_at = ends;
  return {found};
}

TEST(DiagnosePlaceTest, SaysWhoAnsweredAndHowLongThatIsGood) {
  const Diagnosis timed = diagnose(token(TimePoint(hours(1) + seconds(61))));
  EXPECT_EQ(timed.check, "credentials");
  EXPECT_EQ(timed.level, Level::kGood);
  EXPECT_EQ(timed.found, "a place, good for another 1h01m01s, then renewed");
  EXPECT_EQ(timed.remedy, "");
  EXPECT_EQ(diagnose(token(std::nullopt)).found, "a place");
}

TEST(DiagnosePlaceTest, SaysWhyThereAreNoneAndWhatToDo) {
  const Diagnosis refused =
      diagnose(Error(ErrorCode::kPermissionDenied, "no such account"));
  EXPECT_EQ(refused.level, Level::kBad);
  EXPECT_EQ(refused.found, "no such account");
  EXPECT_THAT(refused.remedy, HasSubstr("a guide"));

  const Diagnosis away = diagnose(Error(ErrorCode::kUnavailable, "HTTP 502"));
  EXPECT_EQ(away.level, Level::kBad);
  EXPECT_THAT(away.remedy, HasSubstr("network"));

  const Diagnosis nothing = diagnose(CredentialAnswer::none("it is not set"));
  EXPECT_EQ(nothing.level, Level::kBad);
  EXPECT_EQ(nothing.found, "it is not set");
}

}  // namespace
}  // namespace leat
