#include "leat/store/layers/paced_store.h"

#include <chrono>
#include <utility>

namespace leat {
namespace {

constexpr Nanoseconds kWorthTelling = std::chrono::milliseconds(1);

/// The service has looked at the request, and says whether it took it.
bool is_reply(const Result<void>& result) {
  if (result) return true;
  const ErrorCode code = result.error().code();
  return code != ErrorCode::kUnavailable && code != ErrorCode::kCancelled &&
         code != ErrorCode::kDeadlineExceeded &&
         code != ErrorCode::kResourceExhausted;
}

bool is_throttled(const Result<void>& result) {
  return !result && result.error().code() == ErrorCode::kThrottled;
}

}  // namespace

PacedStore::PacedStore(std::unique_ptr<Store> inner, Metrics* metrics,
                       std::shared_ptr<RequestPace> pace)
    : StoreWrapper(std::move(inner)),
      metrics_(metrics),
      pace_(std::move(pace)),
      queue_(turns_, [this](ReadQueue::Waiting read, TimePoint now) {
        send(std::move(read), now);
      }) {}

void PacedStore::read(ReadRequest request, std::stop_token stop,
                      ReadDone done) {
  if (!pace_->has_turns()) {
    const TimePoint now = clock_.now();
    return send({std::move(request), std::move(stop), std::move(done), now},
                now);
  }
  queue_.add(std::move(request), std::move(stop), std::move(done));
}

void PacedStore::send(ReadQueue::Waiting read, TimePoint now) {
  if (read.request.observer != nullptr && now - read.asked >= kWorthTelling &&
      pace_->requests_per_second()) {
    read.request.observer->held_back(read.asked, now);
  }
  if (metrics_ != nullptr) {
    metrics_->add(Metric::kStoreReads, 1);
    metrics_->add(Metric::kStoreInFlight, 1);
  }
  const std::uint64_t size_bytes = read.request.into.size();
  inner_->read(std::move(read.request), std::move(read.stop),
               [this, size_bytes, now,
                done = std::move(read.done)](Result<void> result) {
                 hear(size_bytes, now, done, std::move(result));
               });
}

void PacedStore::hear(std::uint64_t size_bytes, TimePoint sent,
                      const ReadDone& done, Result<void> result) {
  const TimePoint now = clock_.now();
  if (metrics_ != nullptr) count(size_bytes, sent, now, result);
  if (is_reply(result)) {
    const bool had_turns = pace_->has_turns();
    pace_->heard(is_throttled(result), sent, now);
    if (had_turns && !pace_->has_turns()) queue_.change([] {});
  }
  done(std::move(result));  // After this the store may be gone.
}

void PacedStore::count(std::uint64_t size_bytes, TimePoint sent, TimePoint now,
                       const Result<void>& result) {
  metrics_->add(Metric::kStoreReadNanoseconds, (now - sent).count());
  metrics_->add(Metric::kStoreInFlight, -1);
  if (result) {
    metrics_->add(Metric::kStoreReadBytes,
                  static_cast<std::int64_t>(size_bytes));
    return;
  }
  if (result.error().code() != ErrorCode::kCancelled) {
    metrics_->add(Metric::kStoreReadErrors, 1);
  }
  if (is_throttled(result)) metrics_->add(Metric::kStoreThrottled, 1);
}

Result<ListPage> PacedStore::list(const ListRequest& request,
                                  std::stop_token stop) {
  if (metrics_ != nullptr) metrics_->add(Metric::kStoreLists, 1);
  return inner_->list(request, std::move(stop));
}

}  // namespace leat
