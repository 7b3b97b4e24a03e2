#include "leat/store/cloud/diagnosis.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace leat {

std::string remaining_life(Nanoseconds left) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(left).count();
  return fmt::format("good for another {}h{:02}m{:02}s, then renewed",
                     seconds / 3600, seconds / 60 % 60, seconds % 60);
}

Diagnosis no_credentials(std::string_view why) {
  return known_credentials(fmt::format("none: {}", why));
}

Diagnosis known_credentials(std::string who) {
  return {.check = "credentials", .found = std::move(who)};
}

Diagnosis diagnose_place(CredentialProvider& place, const Clock& clock,
                         std::string_view guide, const std::stop_token& stop) {
  Diagnosis diagnosis{.check = "credentials"};
  const auto fail = [&](std::string why, std::string remedy) {
    diagnosis.level = Diagnosis::Level::kBad;
    diagnosis.found = std::move(why);
    diagnosis.remedy = std::move(remedy);
    return diagnosis;
  };
  const Result<CredentialAnswer> answer = place.fetch(stop);
  const std::string set_up = fmt::format("{} lists the places", guide);
  if (!answer) {
    return fail(answer.error().message(),
                retryable(answer.error().code())
                    ? "check the network, and try again"
                    : set_up);
  }
  if (!answer->found) return fail(answer->why_not, set_up);
  diagnosis.found = place.name();
  if (const auto ends = answer->found->expires_at) {
    diagnosis.found += ", " + remaining_life(*ends - clock.now());
  }
  return diagnosis;
}

}  // namespace leat
