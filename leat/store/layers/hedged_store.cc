#include "leat/store/layers/hedged_store.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include "leat/base/buffer.h"

namespace leat {
namespace {

constexpr Nanoseconds kBetweenLooks = std::chrono::milliseconds(10);
constexpr std::size_t kMostHedgedBytes = 1 << 20;

// Each read adds this much to the number of duplicates that may be sent. Up to
// kMostSavedReads are saved up for a bad moment.
constexpr double kAllowed = 0.02;
constexpr double kMostSavedReads = 16;

// Reads that nobody waits for yet leave this many to those that are waited for.
constexpr double kLeftByOthers = kMostSavedReads / 2;
// The most duplicates of one read, one after the other.
constexpr int kMostSeconds = 2;

// A read is late once it has taken longer than both limits: this many times the
// median, and kTimesNineOfTen times the time within which nine of ten reads
// end. On a good day, when times are log-normal with a sigma of 0.5, one read
// of 350 is late, or one of 160 if somebody waits for it.
constexpr double kTimesMedian = 4;
constexpr double kTimesMedianAwaited = 3.5;
// One of 20 would be late by this. Only a few reads are judged by it: the first
// ones, and duplicates.
constexpr double kTimesMedianSoonest = 2.25;
constexpr std::size_t kFirstReads = 256;
constexpr double kTimesNineOfTen = 1.5;

}  // namespace

/// Up to 16 KiB, 64 KiB, 256 KiB, 1 MiB.
std::size_t HedgedStore::size_class(std::size_t size_bytes) {
  const auto bits =
      static_cast<std::size_t>(std::bit_width((size_bytes - 1) >> 14));
  return std::min(kSizes - 1, (bits + 1) / 2);
}

HedgedStore::Patience HedgedStore::patience_with(const UsualTime& usual) const {
  const auto median = usual.at(0.5);
  if (!median) return {};
  const auto at_least = [&](double times_median, double times_nine_of_ten) {
    return std::max(
        least_age_,
        from_seconds(std::max(times_median * to_seconds(*median),
                              times_nine_of_ten * to_seconds(*usual.at(0.9)))));
  };
  return {.others = at_least(kTimesMedian, kTimesNineOfTen),
          .awaited = at_least(kTimesMedianAwaited, kTimesNineOfTen),
          .soonest = at_least(kTimesMedianSoonest, 1)};
}

/// A read that somebody may come to wait for.
struct HedgedStore::Flight {
  using OnStop = std::stop_callback<std::function<void()>>;

  ReadRequest request;
  ReadDone done;
  TimePoint sent;
  // Guarded by the store's mutex.
  std::optional<Flights::iterator> place;
  TimePoint last_sent;  ///< First or second.
  int seconds = 0;
  bool is_of_the_first = false;

  std::stop_source stop_first;
  std::optional<OnStop> on_stop;
  Buffer copy;

  Mutex mutex;
  std::stop_source stop_second LEAT_GUARDED_BY(mutex);
  bool has_second LEAT_GUARDED_BY(mutex) = false;
  /// The second is stopped, and another takes its place.
  bool is_replaced LEAT_GUARDED_BY(mutex) = false;
  bool is_answered LEAT_GUARDED_BY(mutex) = false;
  /// The read that failed, or was cancelled, while the other goes on.
  std::optional<Result<void>> first LEAT_GUARDED_BY(mutex);
  std::optional<Result<void>> second LEAT_GUARDED_BY(mutex);

  /// Does not stop it under the lock: a stopped read may end before
  /// request_stop() returns.
  void stop_the_second() {
    std::stop_source copied;
    {
      const MutexLock lock(mutex);
      copied = stop_second;
    }
    copied.request_stop();
  }
  /// The first goes on, and no answer has come.
  bool is_open() LEAT_REQUIRES(mutex) {
    return !is_answered && !first && !(second && *second) &&
           !stop_first.stop_requested();
  }
};

HedgedStore::HedgedStore(std::unique_ptr<Store> inner,
                         std::function<bool(std::size_t)> may_send,
                         Metrics* metrics, Nanoseconds least_age)
    : StoreWrapper(std::move(inner)),
      may_send_(std::move(may_send)),
      least_age_(least_age),
      metrics_(metrics),
      timers_("leat-hedge") {}

HedgedStore::~HedgedStore() {
  MutexLock lock(mutex_);
  is_ending_ = true;
  while (duplicates_ != 0) changed_.wait(lock);
}

void HedgedStore::read(ReadRequest request, std::stop_token stop,
                       ReadDone done) {
  if (request.observer == nullptr || request.into.size() > kMostHedgedBytes) {
    return inner_->read(std::move(request), std::move(stop), std::move(done));
  }
  auto flight = std::make_shared<Flight>();
  flight->request = request;
  flight->done = std::move(done);
  flight->sent = flight->last_sent = clock_.now();
  {
    const MutexLock lock(mutex_);
    flight->place = flights_.insert(flights_.end(), flight);
    allowed_ = std::min(allowed_ + kAllowed, kMostSavedReads);
    flight->is_of_the_first = ++sent_ <= kFirstReads;
    look_again();
  }
  flight->on_stop.emplace(std::move(stop), [flight] {
    const FlightRef held = flight;  // The first stop may end this callback.
    held->stop_first.request_stop();
    held->stop_the_second();
  });
  inner_->read(std::move(request), flight->stop_first.get_token(),
               [this, flight](Result<void> result) {
                 first_ended(flight, std::move(result));
               });
}

void HedgedStore::look_again() {
  if (will_look_ || is_ending_ || flights_.empty()) return;
  will_look_ = true;
  timers_.after(kBetweenLooks, [this] { look(); });
}

void HedgedStore::look() {
  Flights to_hedge;
  {
    const MutexLock lock(mutex_);
    will_look_ = false;
    look_again();
    if (allowed_ >= 1) to_hedge = late();
  }
  for (const FlightRef& flight : to_hedge) hedge(flight);
}

/// Those that take too long, as many as are allowed.
HedgedStore::Flights HedgedStore::late() {
  const TimePoint now = clock_.now();
  std::array<Patience, kSizes> patience;
  for (std::size_t i = 0; i < kSizes; ++i) {
    patience[i] = patience_with(usual_[i]);
  }
  Flights found;
  for (auto next = flights_.begin(); next != flights_.end() && allowed_ >= 1;) {
    const auto place = next++;
    Flight& flight = **place;
    const Nanoseconds age = now - flight.last_sent;
    if (age < kBetweenLooks) break;
    const bool is_awaited = flight.request.observer->is_awaited();
    const Patience& usual = patience[size_class(flight.request.into.size())];
    const bool is_soon = flight.is_of_the_first || flight.seconds != 0;
    const Nanoseconds late_at = !is_awaited ? usual.others
                                : is_soon   ? usual.soonest
                                            : usual.awaited;
    if (age < late_at || (!is_awaited && allowed_ < kLeftByOthers)) continue;
    // One that is late itself is stopped first.
    const std::size_t more = flight.seconds == 0 ? 1 : 0;
    if (!may_send_(std::max<std::size_t>(1, duplicates_ + more))) break;
    allowed_ -= 1;
    ++duplicates_;
    found.push_back(*place);
    if (++flight.seconds == kMostSeconds) {
      flight.place.reset();
      flights_.erase(place);
    } else {
      flight.last_sent = now;
      flights_.splice(flights_.end(), flights_, place);
    }
  }
  return found;
}

void HedgedStore::hedge(const FlightRef& flight) {
  bool is_open = false;
  std::optional<std::stop_source> late_itself;
  {
    const MutexLock lock(flight->mutex);
    is_open = flight->is_open();
    if (is_open && flight->has_second && !flight->second) {
      late_itself = flight->stop_second;
      flight->is_replaced = true;
    } else if (is_open) {
      flight->has_second = true;
      flight->second.reset();
    }
  }
  if (!is_open) return land(false);
  if (!late_itself) return send_second(flight);
  // Its memory is free once it has ended: second_ended() sends the other.
  late_itself->request_stop();
}

void HedgedStore::send_second(const FlightRef& flight) {
  ReadRequest again = flight->request;
  std::stop_token stop;
  {
    const MutexLock lock(flight->mutex);
    if (flight->copy.size() == 0) {
      flight->copy = Buffer(flight->request.into.size());
    }
    again.into = flight->copy.span();
    stop = flight->stop_second.get_token();
  }
  if (metrics_ != nullptr) metrics_->add(Metric::kStoreHedges, 1);
  again.observer = nullptr;
  inner_->read(std::move(again), std::move(stop),
               [this, flight](Result<void> result) {
                 second_ended(flight, std::move(result));
               });
}

void HedgedStore::first_ended(const FlightRef& flight, Result<void> result) {
  {
    const MutexLock lock(mutex_);
    if (flight->place) flights_.erase(*flight->place);
    flight->place.reset();
    if (result) {
      usual_[size_class(flight->request.into.size())].add(clock_.now() -
                                                          flight->sent);
    }
  }
  bool has_lost = false;
  {
    const MutexLock lock(flight->mutex);
    if (!result && flight->has_second && !flight->second) {
      flight->first = std::move(result);  // The other may still succeed.
      return;
    }
    has_lost = !result && flight->second && *flight->second;
    flight->is_answered = true;
  }
  flight->on_stop.reset();
  flight->stop_the_second();
  if (has_lost) {
    std::memcpy(flight->request.into.data(), flight->copy.data(),
                flight->copy.size());
    result = {};
  }
  const ReadDone done = std::move(flight->done);
  done(std::move(result));  // After this the store may be gone.
}

void HedgedStore::second_ended(const FlightRef& flight, Result<void> result) {
  std::optional<Result<void>> first;
  bool is_good = false;
  bool is_replaced = false;
  bool has_next = false;
  {
    const MutexLock lock(flight->mutex);
    is_good = result && !flight->is_answered;
    is_replaced = std::exchange(flight->is_replaced, false);
    has_next = is_replaced && !result && flight->is_open();
    first = std::exchange(flight->first, std::nullopt);
    if (has_next) {
      flight->stop_second = std::stop_source();
    } else {
      flight->second = std::move(result);
    }
  }
  // Until the first has ended it may still write.
  if (is_good) flight->stop_first.request_stop();
  if (first) first_ended(flight, std::move(*first));
  if (has_next) {
    send_second(flight);
  } else if (is_replaced) {
    land(false);
  }
  land(is_good);
}

void HedgedStore::land(bool is_good) {
  if (is_good && metrics_ != nullptr) {
    metrics_->add(Metric::kStoreHedgesWon, 1);
  }
  const MutexLock lock(mutex_);
  --duplicates_;
  changed_.notify_all();
}

}  // namespace leat
