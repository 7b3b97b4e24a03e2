#include "leat/store/layers/request_pace.h"

#include <algorithm>

namespace leat {
namespace {

// More are of no use to a reader.
constexpr std::size_t kKeptEpisodes = 500;

}  // namespace

RequestPace::RequestPace(const std::string& folder, std::string_view service)
    : memory_(folder, service) {
  const auto state = memory_.hold();
  const MutexLock lock(mutex_);
  // One that goes on is this object's too.
  noted_ = state->episodes() - (state->bound() ? 1 : 0);
  state->start_slowly();
}

TimePoint RequestPace::take_turn(TimePoint now) {
  return memory_.hold()->take_turn(now);
}

void RequestPace::heard(bool is_throttled, TimePoint sent, TimePoint now) {
  const auto state = memory_.hold();
  state->heard(is_throttled, sent, now);
  note_episode(*state);
}

/// Others may have begun and ended it.
void RequestPace::note_episode(const PaceState& state) const {
  const MutexLock lock(mutex_);
  if (state.episodes() != noted_) {
    noted_ = state.episodes();
    if (noted_ == 0) return;
    if (episodes_.size() == kKeptEpisodes) episodes_.pop_front();
    episodes_.push_back(state.latest());
  } else if (!episodes_.empty()) {
    episodes_.back() = state.latest();
  }
}

std::vector<RequestPace::Episode> RequestPace::episodes() const {
  note_episode(*memory_.hold());
  const MutexLock lock(mutex_);
  return {episodes_.begin(), episodes_.end()};
}

std::optional<double> RequestPace::requests_per_second() const {
  return memory_.hold()->bound();
}

bool RequestPace::holds(TimePoint now) const {
  return memory_.hold()->holds(now);
}

}  // namespace leat
