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

// The duplicates that a read allows. Some are saved up for a bad moment.
constexpr double kAllowed = 0.02;
constexpr double kMostSaved = 16;

// A read is late past the greater of these. On a good day, when times are
// log-normal with a sigma of 0.5, that is one of 300.
constexpr double kTimesMedian = 4;
constexpr double kTimesNineOfTen = 1.5;

}  // namespace

/// Up to 16 KiB, 64 KiB, 256 KiB, 1 MiB.
std::size_t HedgedStore::size_class(std::size_t size_bytes) {
  const auto bits =
      static_cast<std::size_t>(std::bit_width((size_bytes - 1) >> 14));
  return std::min(kSizes - 1, (bits + 1) / 2);
}

Nanoseconds HedgedStore::patience_with(const UsualTime& usual) const {
  const auto median = usual.at(0.5);
  if (!median) return Nanoseconds::max();
  return std::max(
      least_age_,
      from_seconds(std::max(kTimesMedian * to_seconds(*median),
                            kTimesNineOfTen * to_seconds(*usual.at(0.9)))));
}

/// A read that somebody may come to wait for.
struct HedgedStore::Flight {
  using OnStop = std::stop_callback<std::function<void()>>;

  ReadRequest request;
  ReadDone done;
  TimePoint sent;
  // Guarded by the store's mutex.
  std::optional<Flights::iterator> place;

  std::stop_source stop_first;
  std::stop_source stop_second;
  std::optional<OnStop> on_stop;
  Buffer copy;

  Mutex mutex;
  bool has_second LEAT_GUARDED_BY(mutex) = false;
  bool is_answered LEAT_GUARDED_BY(mutex) = false;
  /// The read that failed, or was cancelled, while the other goes on.
  std::optional<Result<void>> first LEAT_GUARDED_BY(mutex);
  std::optional<Result<void>> second LEAT_GUARDED_BY(mutex);
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
  flight->sent = clock_.now();
  {
    const MutexLock lock(mutex_);
    flight->place = flights_.insert(flights_.end(), flight);
    allowed_ = std::min(allowed_ + kAllowed, kMostSaved);
    look_again();
  }
  flight->on_stop.emplace(std::move(stop), [flight] {
    const FlightRef held = flight;  // The first stop may end this callback.
    held->stop_first.request_stop();
    held->stop_second.request_stop();
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

/// Those that take too long and are waited for, as many as are allowed. They
/// are looked at no more.
HedgedStore::Flights HedgedStore::late() {
  const TimePoint now = clock_.now();
  std::array<Nanoseconds, kSizes> patience;
  std::ranges::transform(
      usual_, patience.begin(),
      [this](const UsualTime& one) { return patience_with(one); });
  Flights found;
  for (auto next = flights_.begin(); next != flights_.end() && allowed_ >= 1;) {
    const auto flight = next++;
    const ReadRequest& request = (*flight)->request;
    const Nanoseconds age = now - (*flight)->sent;
    if (age < kBetweenLooks) break;
    if (age < patience[size_class(request.into.size())] ||
        !request.observer->is_awaited()) {
      continue;
    }
    if (!may_send_(duplicates_ + 1)) break;
    allowed_ -= 1;
    ++duplicates_;
    (*flight)->place.reset();
    found.splice(found.end(), flights_, flight);
  }
  return found;
}

void HedgedStore::hedge(const FlightRef& flight) {
  {
    const MutexLock lock(flight->mutex);
    if (flight->is_answered) {
      flight->second = Error(ErrorCode::kCancelled, "not sent");
    } else {
      flight->has_second = true;
      flight->copy = Buffer(flight->request.into.size());
    }
  }
  if (flight->second) return land(false);
  if (metrics_ != nullptr) metrics_->add(Metric::kStoreHedges, 1);
  ReadRequest again = flight->request;
  again.into = flight->copy.span();
  again.observer = nullptr;
  inner_->read(std::move(again), flight->stop_second.get_token(),
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
  flight->stop_second.request_stop();
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
  {
    const MutexLock lock(flight->mutex);
    is_good = result && !flight->is_answered;
    first = std::exchange(flight->first, std::nullopt);
    flight->second = std::move(result);
  }
  // Until the first has ended it may still write.
  if (is_good) flight->stop_first.request_stop();
  if (first) first_ended(flight, std::move(*first));
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
