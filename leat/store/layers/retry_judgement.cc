#include "leat/store/layers/retry_judgement.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "leat/base/units.h"
#include "leat/store/layers/silence.h"

namespace leat {
namespace {

/// For advice: the option that bounded the attempts.
std::string remedy(ErrorCode code, std::string_view bound) {
  switch (code) {
    case ErrorCode::kThrottled:
      return fmt::format("raise {} or lower max_in_flight", bound);
    case ErrorCode::kDeadlineExceeded:
      return fmt::format(
          "lower max_in_flight if the network is overloaded; {} bears longer "
          "outages",
          bound);
    default:
      return fmt::format("{} bears longer outages", bound);
  }
}

// Those that were asked to wait come back over this part of the wait.
constexpr int kSpread = 4;

// A store that has answered nothing for this long has an outage.
constexpr Nanoseconds kOutage = std::chrono::seconds(1);
constexpr std::size_t kOutageFailures = 64;  // Without a success among them.

}  // namespace

RetryJudgement::RetryJudgement(RetryOptions options, std::uint64_t seed,
                               std::shared_ptr<const EndpointNotes> notes,
                               std::function<TimePoint()> not_before)
    : policy_(options, seed),
      notes_(std::move(notes)),
      not_before_(std::move(not_before)),
      answered_at_(clock_.now()) {}

void RetryJudgement::answered() {
  const MutexLock lock(mutex_);
  answered_at_ = clock_.now();
  next_turn_ = answered_at_;
  failed_since_ = 0;
}

bool RetryJudgement::is_answering(TimePoint now) const {
  return now - answered_at_ < kOutage && failed_since_ < kOutageFailures;
}

TimePoint RetryJudgement::asked_wait(const Error& error, const Trouble& trouble,
                                     TimePoint now) const {
  // Silence is no answer of the service, and so asks for nothing.
  if (!not_before_ || error.code() == ErrorCode::kDeadlineExceeded) return now;
  const TimePoint end = trouble.failed + patience_with(error, trouble);
  return std::max(now, std::min(not_before_(), end));
}

TimePoint RetryJudgement::next_try(std::uint32_t attempts_made,
                                   std::size_t others, TimePoint now,
                                   TimePoint from) {
  const RetryOptions& options = policy_.options();
  const MutexLock lock(mutex_);
  ++failed_since_;
  const bool is_outage = !is_answering(now);
  // If many operations fail in an outage, each waits for long, since
  // others try for it. A few do not wait so long: nobody else would notice
  // the end of the outage.
  const Nanoseconds bound =
      is_outage ? std::max(options.lone_backoff,
                           from_seconds(2 * static_cast<double>(others) /
                                        options.tries_per_second))
                : options.lone_backoff;
  const Nanoseconds longest =
      std::min(policy_.longest_backoff(attempts_made), bound);
  // A wait is also drawn after the one that the service asked for: it asked
  // many operations, and they must not all come back together.
  TimePoint until =
      from + policy_.draw(std::max(longest, (from - now) / kSpread));
  if (is_outage) {
    const auto between = from_seconds(1 / options.tries_per_second);
    next_turn_ = std::max(next_turn_, from) + between;
    until = std::max(until, next_turn_);
  }
  return until;
}

bool RetryJudgement::may_pass(ErrorCode code) const {
  return retryable(code) ||
         (code == ErrorCode::kResourceExhausted && has_read_);
}

bool RetryJudgement::worth_another(const Error& error,
                                   const Trouble& trouble) const {
  if (!may_pass(error.code()) ||
      !policy_.allows_another(trouble.attempts_made)) {
    return false;
  }
  const TimePoint now = clock_.now();
  if (const auto patience = patience_at_first(error)) {
    return now - trouble.began +
               policy_.longest_backoff(trouble.attempts_made) <=
           *patience;
  }
  return policy_.options().max_attempts.has_value() ||
         now - trouble.failed <= patience_with(error, trouble);
}

TimePoint RetryJudgement::end_of(const Error& error,
                                 const Trouble& trouble) const {
  return policy_.options().max_attempts || patience_at_first(error)
             ? TimePoint::max()
             : trouble.failed + patience_with(error, trouble);
}

bool RetryJudgement::is_hopeless(const Error& error,
                                 const Trouble& trouble) const {
  const TimePoint now = clock_.now();
  if (now < end_of(error, trouble)) return false;
  const MutexLock lock(mutex_);
  return answered_at_ < trouble.failed && !is_answering(now);
}

/// One of many that fails while the others succeed will not be helped by time.
Nanoseconds RetryJudgement::patience_with(const Error& error,
                                          const Trouble& trouble) const {
  const RetryOptions& options = policy_.options();
  if (error.code() == ErrorCode::kThrottled) return options.patience;
  if (error.code() == ErrorCode::kResourceExhausted) {
    return std::min(options.lone_patience, options.patience);
  }
  const MutexLock lock(mutex_);
  const bool is_lone =
      answered_at_ > trouble.failed && is_answering(clock_.now());
  return is_lone ? std::min(options.lone_patience, options.patience)
                 : options.patience;
}

/// A server that has never answered may not exist, and is asked for this long.
/// Nullopt: it is there.
std::optional<Nanoseconds> RetryJudgement::patience_at_first(
    const Error& error) const {
  if (notes_ == nullptr || notes_->is_there(clock_.now())) return std::nullopt;
  // No connection, no such name, another protocol.
  if (error.code() == ErrorCode::kUnavailable) {
    return policy_.options().start_patience;
  }
  // Nothing refuses, and nothing answers. It may only take its time.
  if (error.code() == ErrorCode::kDeadlineExceeded) {
    return policy_.options().silent_patience;
  }
  return std::nullopt;
}

Error RetryJudgement::given_up(Error error, const Trouble& trouble) const {
  if (!retryable(error.code())) return error;
  const std::string tried =
      fmt::format("{} attempt{} in {}", trouble.attempts_made,
                  trouble.attempts_made == 1 ? "" : "s",
                  format_duration(clock_.now() - trouble.began));
  const ErrorCode code = error.code();
  const std::string_view bound =
      policy_.options().max_attempts ? "AWS_MAX_ATTEMPTS" : "patience=";
  std::string doing;
  if (!patience_at_first(error)) {
    doing = fmt::format("gave up after {} ({})", tried, remedy(code, bound));
  } else if (code == ErrorCode::kDeadlineExceeded) {
    doing = fmt::format("no answer to {} ({})", tried, kSwallowedRemedy);
  } else {
    doing = "not reached by " + tried;
  }
  return std::move(error).while_doing(doing);
}

}  // namespace leat
