#include "leat/engine/loader/pace_decisions.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace leat {
namespace {

using Episode = RequestPace::Episode;

Decision decided(TimePoint at, TimePoint opened_at, double before, double after,
                 std::string reason) {
  return {.at_seconds = std::max(0., to_seconds(at - opened_at)),
          .job = {},
          .setting = Setting::kRequestsPerSecond,
          .before = before,
          .after = after,
          .reason = std::move(reason),
          .expected_gain = {},
          .found_gain = {}};
}

std::string why_it_ended(const Episode& episode) {
  const auto lowest =
      fmt::format("; {:.0f} was the least in these {:.0f} s", episode.least,
                  to_seconds(episode.ended - episode.began));
  switch (episode.end) {
    case Episode::End::kCalm:
      return "the store has throttled nothing for a minute" + lowest;
    case Episode::End::kNoLimit:
      return "the store throttles no more, however many are sent" + lowest;
    case Episode::End::kNoHelp:
      return "the store throttles fewer requests as often, so there is another "
             "reason than their number" +
             lowest;
    case Episode::End::kNotYet:
      break;
  }
  return {};
}

}  // namespace

std::vector<Decision> pace_decisions(std::span<const Episode> episodes,
                                     TimePoint opened_at) {
  std::vector<Decision> decisions;
  for (const Episode& episode : episodes) {
    decisions.push_back(decided(
        episode.began, opened_at, episode.sent, episode.bound,
        fmt::format("the store throttled {} of {} requests (503 SlowDown, 429)",
                    episode.throttled, episode.served + episode.throttled)));
    if (episode.end == Episode::End::kNotYet) continue;
    decisions.push_back(decided(episode.ended, opened_at, episode.last, 0,
                                why_it_ended(episode)));
  }
  return decisions;
}

}  // namespace leat
