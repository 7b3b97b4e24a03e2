#include "leat/store/layers/retrying_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "leat/base/units.h"

namespace leat {
namespace {

Error not_sent_again(const Error& last) {
  return Error(ErrorCode::kCancelled,
               "cancelled, and not sent again after: " + last.message());
}

/// "There is no such object" is an answer too.
template <class T>
bool is_answer(const Result<T>& result) {
  return result || (!retryable(result.error().code()) &&
                    result.error().code() != ErrorCode::kCancelled);
}

std::string name_of(const Store& store, const EndpointNotes* notes) {
  const std::string url = store.url_of("");
  if (notes == nullptr || notes->endpoint.empty()) return url;
  return fmt::format("{} at {}", url, notes->endpoint);
}

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

// A store that has answered nothing for so long has an outage.
constexpr Nanoseconds kOutage = std::chrono::seconds(1);
constexpr std::size_t kOutageFailures = 64;  // Without a success among them.
constexpr std::size_t kWokenByOne = 2;

/// Waits until the time is up or `stop` fires.
void wait(Nanoseconds how_long, const std::stop_token& stop) {
  Mutex mutex;
  CondVar stopped;
  MutexLock lock(mutex);
  stopped.wait_for(lock, stop, how_long, [] { return false; });
}

}  // namespace

/// One read from read() until its `done`.
struct RetryingStore::Flight {
  using OnStop = std::stop_callback<std::function<void()>>;

  ReadRequest request;
  std::stop_token stop;
  ReadDone done;
  Trouble trouble;
  Result<void> last;
  // Guarded by the store's mutex: it is among the sleepers.
  std::optional<Flights::iterator> asleep;

  // The timer of the back-off, if one is on.
  Mutex mutex;
  TimerQueue::Id timer LEAT_GUARDED_BY(mutex) = 0;
  TimePoint not_before LEAT_GUARDED_BY(mutex);
  TimePoint until LEAT_GUARDED_BY(mutex);
  std::optional<OnStop> on_stop;
  std::optional<OnStop> on_close;
};

RetryingStore::RetryingStore(std::unique_ptr<Store> inner, RetryOptions options,
                             std::uint64_t seed, Metrics* metrics,
                             std::shared_ptr<const EndpointNotes> notes,
                             std::function<TimePoint()> not_before)
    : StoreWrapper(std::move(inner)),
      policy_(options, seed),
      metrics_(metrics),
      notes_(std::move(notes)),
      not_before_(std::move(not_before)),
      answered_at_(clock_.now()),
      timers_("leat-retry") {
  silence_.emplace(Silence::Options{.name = name_of(*inner_, notes_.get()),
                                    .max_attempts = options.max_attempts,
                                    .patience = options.patience,
                                    .say_every = options.say_every,
                                    .say = {},
                                    .notes = notes_},
                   timers_);
}

RetryingStore::~RetryingStore() {
  closing_.request_stop();
  MutexLock lock(mutex_);
  while (flights_ != 0) changed_.wait(lock);
}

void RetryingStore::read(ReadRequest request, std::stop_token stop,
                         ReadDone done) {
  auto flight = std::make_shared<Flight>();
  flight->request = std::move(request);
  flight->stop = std::move(stop);
  flight->done = std::move(done);
  flight->trouble.began = clock_.now();
  {
    const MutexLock lock(mutex_);
    ++flights_;
  }
  silence_->began();
  send(flight);
}

void RetryingStore::send(const FlightRef& flight) {
  ReadRequest request = flight->request;
  request.attempt = flight->trouble.attempts_made++;
  inner_->read(
      std::move(request), flight->stop,
      [this, flight](Result<void> result) { hear(flight, std::move(result)); });
}

void RetryingStore::hear(const FlightRef& flight, Result<void> result) {
  if (result) {
    has_read_ = true;
    return finish(flight, std::move(result));
  }
  Trouble& trouble = flight->trouble;
  if (trouble.attempts_made == 1) trouble.failed = clock_.now();
  if (!worth_another(result.error(), trouble)) {
    return finish(flight, given_up(std::move(result).error(), trouble));
  }
  if (flight->stop.stop_requested() || closing_.stop_requested()) {
    return finish(flight, not_sent_again(result.error()));
  }
  silence_->failed(result.error(), trouble.attempts_made);
  flight->last = std::move(result);
  back_off(flight);
}

void RetryingStore::back_off(const FlightRef& flight) {
  const TimePoint now = clock_.now();
  const TimePoint from = asked_wait(flight->last.error(), flight->trouble, now);
  // Its turn may come long after its patience has ended.
  const TimePoint until =
      std::min(next_try(flight->trouble.attempts_made, now, from),
               std::max(now, end_of(flight->last.error(), flight->trouble)));
  if (flight->request.observer != nullptr) {
    flight->request.observer->backs_off(now, until);
  }
  {
    const MutexLock lock(flight->mutex);
    flight->timer = 0;
    flight->not_before = from;
    flight->until = until;
  }
  if (until - from > policy_.options().lone_backoff) {
    const MutexLock lock(mutex_);
    flight->asleep = sleepers_.insert(sleepers_.end(), flight);
  }
  // These may call wake() at once, or on another thread from now on. They own
  // the flight and the flight owns them, until go_on() resets them.
  const auto end = [this, flight] { wake(flight, Wake::kToEnd); };
  flight->on_stop.emplace(flight->stop, end);
  flight->on_close.emplace(closing_.get_token(), end);
  const MutexLock lock(flight->mutex);
  flight->timer = timers_.at(flight->until, [this, flight] { go_on(flight); });
}

void RetryingStore::wake(const FlightRef& flight, Wake why) {
  const MutexLock lock(flight->mutex);
  TimePoint at = clock_.now();
  if (why == Wake::kToTry) at = std::max(at, flight->not_before);
  if (at >= flight->until) return;
  flight->until = at;
  // Not here: `done` must not run inside somebody's request_stop().
  if (flight->timer != 0 && timers_.cancel(flight->timer)) {
    flight->timer = timers_.at(at, [this, flight] { go_on(flight); });
  }
}

void RetryingStore::go_on(const FlightRef& flight) {
  {
    // back_off() may still be on its last lines.
    const MutexLock lock(flight->mutex);
  }
  {
    const MutexLock lock(mutex_);
    if (flight->asleep) sleepers_.erase(*flight->asleep);
    flight->asleep.reset();
  }
  // Wait for a wake() that is running, so no lock is held here.
  flight->on_stop.reset();
  flight->on_close.reset();
  if (flight->stop.stop_requested() || closing_.stop_requested()) {
    return finish(flight, not_sent_again(flight->last.error()));
  }
  if (is_hopeless(flight->last.error(), flight->trouble)) {
    Error last = flight->last.error();
    return finish(flight, given_up(std::move(last), flight->trouble));
  }
  if (metrics_ != nullptr) metrics_->add(Metric::kStoreRetries, 1);
  send(flight);
}

void RetryingStore::finish(const FlightRef& flight, Result<void> result) {
  ReadDone done = std::move(flight->done);
  const bool is_good = is_answer(result);
  silence_->ended(is_good);
  if (is_good) answered();
  {
    const MutexLock lock(mutex_);
    --flights_;
    changed_.notify_all();
  }
  done(std::move(result));  // After this the store may be gone.
}

/// The store answers: it may answer those that sleep too.
void RetryingStore::answered() {
  std::vector<FlightRef> woken;
  {
    const MutexLock lock(mutex_);
    answered_at_ = clock_.now();
    next_turn_ = answered_at_;
    failed_since_ = 0;
    while (!sleepers_.empty() && woken.size() < kWokenByOne) {
      woken.push_back(std::move(sleepers_.front()));
      sleepers_.pop_front();
      woken.back()->asleep.reset();
    }
  }
  for (const FlightRef& flight : woken) wake(flight, Wake::kToTry);
}

bool RetryingStore::is_answering(TimePoint now) const {
  return now - answered_at_ < kOutage && failed_since_ < kOutageFailures;
}

TimePoint RetryingStore::asked_wait(const Error& error, const Trouble& trouble,
                                    TimePoint now) const {
  // Silence is no answer of the service, and so asks for nothing.
  if (!not_before_ || error.code() == ErrorCode::kDeadlineExceeded) return now;
  const TimePoint end = trouble.failed + patience_with(error, trouble);
  return std::max(now, std::min(not_before_(), end));
}

TimePoint RetryingStore::next_try(std::uint32_t attempts_made, TimePoint now,
                                  TimePoint from) {
  const RetryOptions& options = policy_.options();
  TimePoint until;
  {
    const MutexLock lock(mutex_);
    ++failed_since_;
    const bool is_outage = !is_answering(now);
    // In an outage many wait for long, in the place of one another. A few do
    // not: nobody else would notice its end.
    const Nanoseconds bound =
        is_outage ? std::max(options.lone_backoff,
                             from_seconds(2 * static_cast<double>(flights_) /
                                          options.tries_per_second))
                  : options.lone_backoff;
    const Nanoseconds longest =
        std::min(policy_.longest_backoff(attempts_made), bound);
    // Drawn also after a wait that the service asked for: it asked many, and
    // they must not come back all together.
    until = from + policy_.draw(std::max(longest, (from - now) / kSpread));
    if (is_outage) {
      const auto between = from_seconds(1 / options.tries_per_second);
      next_turn_ = std::max(next_turn_, from) + between;
      until = std::max(until, next_turn_);
    }
  }
  if (metrics_ != nullptr) {
    metrics_->add(Metric::kStoreBackoffNanoseconds, (until - now).count());
  }
  return until;
}

bool RetryingStore::may_pass(ErrorCode code) const {
  return retryable(code) ||
         (code == ErrorCode::kResourceExhausted && has_read_);
}

bool RetryingStore::worth_another(const Error& error,
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

/// The time after which it is not tried again, however few its attempts.
TimePoint RetryingStore::end_of(const Error& error,
                                const Trouble& trouble) const {
  return policy_.options().max_attempts || patience_at_first(error)
             ? TimePoint::max()
             : trouble.failed + patience_with(error, trouble);
}

/// Its patience has ended, and no other read has had an answer meanwhile.
bool RetryingStore::is_hopeless(const Error& error,
                                const Trouble& trouble) const {
  const TimePoint now = clock_.now();
  if (now < end_of(error, trouble)) return false;
  const MutexLock lock(mutex_);
  return answered_at_ < trouble.failed && !is_answering(now);
}

/// One of many that fails while the others succeed will not be helped by time.
Nanoseconds RetryingStore::patience_with(const Error& error,
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

/// A server that has never answered may not be there, and is asked for so long.
/// Nullopt: it is there.
std::optional<Nanoseconds> RetryingStore::patience_at_first(
    const Error& error) const {
  if (notes_ == nullptr || notes_->has_answered) return std::nullopt;
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

Error RetryingStore::given_up(Error error, const Trouble& trouble) const {
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

template <class Call>
auto RetryingStore::call_again(Call call, const std::stop_token& stop)
    -> decltype(call()) {
  silence_->began();
  auto result = try_again(call, stop);
  silence_->ended(is_answer(result));
  return result;
}

template <class Call>
auto RetryingStore::try_again(Call call, const std::stop_token& stop)
    -> decltype(call()) {
  Trouble trouble{.began = clock_.now()};
  while (true) {
    auto result = call();
    if (is_answer(result)) {
      answered();
      return result;
    }
    const TimePoint now = clock_.now();
    if (++trouble.attempts_made == 1) trouble.failed = now;
    if (!worth_another(result.error(), trouble)) {
      return given_up(std::move(result).error(), trouble);
    }
    silence_->failed(result.error(), trouble.attempts_made);
    const TimePoint from = asked_wait(result.error(), trouble, now);
    const TimePoint until = std::min(next_try(trouble.attempts_made, now, from),
                                     end_of(result.error(), trouble));
    wait(until - now, stop);
    if (stop.stop_requested()) return not_sent_again(result.error());
    if (metrics_ != nullptr) metrics_->add(Metric::kStoreRetries, 1);
  }
}

Result<ListPage> RetryingStore::list(const ListRequest& request,
                                     std::stop_token stop) {
  return call_again([&] { return inner_->list(request, stop); }, stop);
}

Result<ObjectInfo> RetryingStore::write(std::string_view key,
                                        std::span<const std::byte> bytes,
                                        std::stop_token stop) {
  return call_again([&] { return inner_->write(key, bytes, stop); }, stop);
}

Result<ObjectInfo> RetryingStore::stat(std::string_view key,
                                       std::stop_token stop) {
  return call_again([&] { return inner_->stat(key, stop); }, stop);
}

}  // namespace leat
