#include "leat/store/layers/retrying_store.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "leat/base/units.h"

namespace leat {
namespace {

Error not_sent_again(const Error& last) {
  return Error(ErrorCode::kCancelled,
               "cancelled, and not sent again after: " + last.message());
}

/// That there is no such object is an answer too.
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

std::string_view remedy(ErrorCode code) {
  switch (code) {
    case ErrorCode::kThrottled:
      return "raise AWS_MAX_ATTEMPTS or lower max_in_flight";
    case ErrorCode::kDeadlineExceeded:
      return "lower max_in_flight if the network is overloaded; "
             "AWS_MAX_ATTEMPTS bears longer outages";
    default:
      return "AWS_MAX_ATTEMPTS bears longer outages";
  }
}

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
  TimePoint began;
  std::uint32_t attempts_made = 0;
  Result<void> last;

  // The timer of the back-off, if one is on.
  Mutex mutex;
  TimerQueue::Id timer LEAT_GUARDED_BY(mutex) = 0;
  bool is_woken LEAT_GUARDED_BY(mutex) = false;
  std::optional<OnStop> on_stop;
  std::optional<OnStop> on_close;
};

RetryingStore::RetryingStore(std::unique_ptr<Store> inner, RetryOptions options,
                             std::uint64_t seed, Metrics* metrics,
                             std::shared_ptr<const EndpointNotes> notes)
    : StoreWrapper(std::move(inner)),
      policy_(options, seed),
      metrics_(metrics),
      notes_(std::move(notes)),
      timers_("leat-retry") {
  silence_.emplace(Silence::Options{.name = name_of(*inner_, notes_.get()),
                                    .max_attempts = options.max_attempts,
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
  flight->began = clock_.now();
  {
    const MutexLock lock(mutex_);
    ++flights_;
  }
  silence_->began();
  send(flight);
}

void RetryingStore::send(const FlightRef& flight) {
  ReadRequest request = flight->request;
  request.attempt = flight->attempts_made++;
  inner_->read(
      std::move(request), flight->stop,
      [this, flight](Result<void> result) { hear(flight, std::move(result)); });
}

void RetryingStore::hear(const FlightRef& flight, Result<void> result) {
  if (result) return finish(flight, std::move(result));
  if (!worth_another(result.error(), flight->attempts_made, flight->began)) {
    return finish(flight, given_up(std::move(result).error(),
                                   flight->attempts_made, flight->began));
  }
  if (flight->stop.stop_requested() || closing_.stop_requested()) {
    return finish(flight, not_sent_again(result.error()));
  }
  silence_->failed(result.error(), flight->attempts_made);
  flight->last = std::move(result);
  back_off(flight);
}

void RetryingStore::back_off(const FlightRef& flight) {
  const TimePoint from = clock_.now();
  const TimePoint until = from + draw_and_count(flight->attempts_made);
  if (flight->request.observer != nullptr) {
    flight->request.observer->backs_off(from, until);
  }
  {
    const MutexLock lock(flight->mutex);
    flight->timer = 0;
    flight->is_woken = false;
  }
  // These may call wake() at once, or on another thread from now on. The
  // flight holds them and they hold the flight, until go_on() lets go.
  flight->on_stop.emplace(flight->stop, [this, flight] { wake(flight); });
  flight->on_close.emplace(closing_.get_token(),
                           [this, flight] { wake(flight); });
  const MutexLock lock(flight->mutex);
  flight->timer = timers_.at(flight->is_woken ? from : until,
                             [this, flight] { go_on(flight); });
}

void RetryingStore::wake(const FlightRef& flight) {
  const MutexLock lock(flight->mutex);
  flight->is_woken = true;
  // Not here: `done` must not run inside somebody's request_stop().
  if (flight->timer != 0 && timers_.cancel(flight->timer)) {
    flight->timer = timers_.at(clock_.now(), [this, flight] { go_on(flight); });
  }
}

void RetryingStore::go_on(const FlightRef& flight) {
  {
    // back_off() may still be on its last lines.
    const MutexLock lock(flight->mutex);
  }
  // Wait for a wake() that is running, so no lock is held here.
  flight->on_stop.reset();
  flight->on_close.reset();
  if (flight->stop.stop_requested() || closing_.stop_requested()) {
    return finish(flight, not_sent_again(flight->last.error()));
  }
  if (metrics_ != nullptr) metrics_->add(Metric::kStoreRetries, 1);
  send(flight);
}

void RetryingStore::finish(const FlightRef& flight, Result<void> result) {
  ReadDone done = std::move(flight->done);
  silence_->ended(is_answer(result));
  {
    const MutexLock lock(mutex_);
    --flights_;
    changed_.notify_all();
  }
  done(std::move(result));  // After this the store may be gone.
}

bool RetryingStore::worth_another(const Error& error,
                                  std::uint32_t attempts_made,
                                  TimePoint began) const {
  if (!retryable(error.code()) || !policy_.allows_another(attempts_made)) {
    return false;
  }
  const std::optional<Nanoseconds> patience = patience_with(error);
  return !patience ||
         clock_.now() - began + policy_.longest_backoff(attempts_made) <=
             *patience;
}

/// A server that has never answered may not be there, and is asked for so long.
/// Nullopt: it is there, and is asked until the attempts are used up.
std::optional<Nanoseconds> RetryingStore::patience_with(
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

Nanoseconds RetryingStore::draw_and_count(std::uint32_t attempts_made) {
  const Nanoseconds wait = policy_.draw_backoff(attempts_made);
  if (metrics_ != nullptr) {
    metrics_->add(Metric::kStoreBackoffNanoseconds, wait.count());
  }
  return wait;
}

Error RetryingStore::given_up(Error error, std::uint32_t attempts_made,
                              TimePoint began) const {
  if (!retryable(error.code())) return error;
  const std::string tried = fmt::format("{} attempt{} in {}", attempts_made,
                                        attempts_made == 1 ? "" : "s",
                                        format_duration(clock_.now() - began));
  const ErrorCode code = error.code();
  std::string doing;
  if (!patience_with(error)) {
    doing = fmt::format("gave up after {} ({})", tried, remedy(code));
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
  const TimePoint began = clock_.now();
  for (std::uint32_t attempts_made = 1;; ++attempts_made) {
    auto result = call();
    if (result) return result;
    if (!worth_another(result.error(), attempts_made, began)) {
      return given_up(std::move(result).error(), attempts_made, began);
    }
    silence_->failed(result.error(), attempts_made);
    wait(draw_and_count(attempts_made), stop);
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
