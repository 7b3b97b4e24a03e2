#include "leat/store/layers/silence.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "leat/base/units.h"
#include "leat/runtime/log.h"

namespace leat {
namespace {

void say_in_the_log(bool is_trouble, const std::string& text) {
  is_trouble ? log_warning(text) : log_info(text);
}

/// To the second: nobody waits for less.
Nanoseconds whole_seconds(Nanoseconds time) {
  return std::chrono::floor<std::chrono::seconds>(time);
}

}  // namespace

Silence::Silence(Options options, TimerQueue& timers)
    : options_(std::move(options)), timers_(timers) {}

void Silence::began() {
  const MutexLock lock(mutex_);
  if (under_way_++ != 0) return;
  silent_since_ = clock_.now();
  attempts_made_ = 0;
  last_error_.clear();
  // A look that is due anyway finds out by itself that it is too early.
  if (!timer_) look_at(silent_since_ + options_.say_every);
}

void Silence::failed(const Error& error, std::uint32_t attempts_made) {
  const MutexLock lock(mutex_);
  last_error_ = error.message();
  attempts_made_ = std::max(attempts_made_, attempts_made);
}

void Silence::ended(bool is_success) {
  std::string said;
  {
    const MutexLock lock(mutex_);
    --under_way_;
    if (!is_success) return;
    const TimePoint now = clock_.now();
    if (std::exchange(has_said_, false)) {
      said = fmt::format("{} answers again, after {}", options_.name,
                         format_duration(whole_seconds(now - silent_since_)));
    }
    silent_since_ = now;
    attempts_made_ = 0;
    last_error_.clear();
  }
  if (!said.empty())
    (options_.say ? options_.say : say_in_the_log)(false, said);
}

void Silence::look() {
  std::string said;
  {
    const MutexLock lock(mutex_);
    timer_.reset();
    if (under_way_ == 0) return;
    const TimePoint now = clock_.now();
    if (now - silent_since_ < options_.say_every) {
      return look_at(silent_since_ + options_.say_every);
    }
    has_said_ = true;
    said = text(now);
    look_at(now + options_.say_every);
  }
  (options_.say ? options_.say : say_in_the_log)(true, said);
}

void Silence::look_at(TimePoint when) {
  timer_ = timers_.at(when, [this] { look(); });
}

std::string Silence::text(TimePoint now) const {
  std::string said = fmt::format(
      "{}: no request has been answered for {}, and {} {} under way",
      options_.name, format_duration(whole_seconds(now - silent_since_)),
      under_way_, under_way_ == 1 ? "is" : "are");
  if (options_.notes != nullptr && !options_.notes->is_there(now)) {
    said +=
        fmt::format("; this server has never answered: {}", kSwallowedRemedy);
    return attempts_made_ == 0 ? said
                               : said + ". The last failure: " + last_error_;
  }
  if (attempts_made_ == 0) return said + "; nothing has failed yet";
  if (!options_.max_attempts) {
    return fmt::format(
        "{}; Leat waits up to {} for it (patience=). The last failure: {}",
        said, format_duration(options_.patience), last_error_);
  }
  const std::uint32_t most = *options_.max_attempts;
  return fmt::format("{}; {} of {} attempts are left. The last failure: {}",
                     said, most - std::min(most, attempts_made_), most,
                     last_error_);
}

}  // namespace leat
