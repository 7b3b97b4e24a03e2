#include "leat/store/layers/limited_store.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "leat/base/check.h"

namespace leat {
namespace {

constexpr std::size_t kSpareOf = 16;
constexpr Nanoseconds kMostSavedTime = std::chrono::milliseconds(100);

}  // namespace

// A read goes as soon as those before it are paid for, however long it is: so
// one that is larger than what can be saved up goes too.
TimePoint LimitedStore::Window::opens_at(TimePoint now) {
  const std::size_t bound = polite ? std::min(most, polite->most()) : most;
  if (in_flight >= bound) return kNever;
  return bytes_per_second ? paid_until : now;
}

void LimitedStore::Window::passed(const ReadRequest& request, TimePoint now) {
  ++in_flight;
  if (!bytes_per_second) return;
  const double seconds = static_cast<double>(request.into.size()) /
                         static_cast<double>(*bytes_per_second);
  paid_until = std::max(paid_until, now - kMostSavedTime) +
               from_seconds(std::min(seconds, 3600.0));
}

LimitedStore::LimitedStore(std::unique_ptr<Store> inner, std::size_t window,
                           Metrics* metrics,
                           std::shared_ptr<const EndpointNotes> notes)
    : StoreWrapper(std::move(inner)),
      metrics_(metrics),
      queue_(window_, [this](ReadQueue::Waiting read, TimePoint now) {
        send(std::move(read), now);
      }) {
  LEAT_CHECK(window > 0);
  window_.most = window;
  window_.notes = std::move(notes);
  if (window_.notes != nullptr) window_.polite.emplace(*window_.notes);
}

LimitedStore::~LimitedStore() {
  queue_.look([this] { LEAT_CHECK(window_.in_flight == 0); });
}

void LimitedStore::set_window(std::size_t window) {
  LEAT_CHECK(window > 0);
  queue_.change([&] { window_.most = window; });
}

std::size_t LimitedStore::window() const {
  std::size_t most = 0;
  queue_.look([&] { most = window_.most; });
  return most;
}

bool LimitedStore::has_room_for(std::size_t more) const {
  bool has_room = false;
  queue_.look([&] {
    has_room = window_.in_flight + more <= window_.most ||
               more <= window_.most / kSpareOf;
  });
  return has_room;
}

void LimitedStore::set_bytes_per_second(std::optional<std::uint64_t> rate) {
  LEAT_CHECK(rate != std::uint64_t{0});
  queue_.change([&] {
    if (rate == window_.bytes_per_second) return;
    window_.bytes_per_second = rate;
    window_.paid_until = clock_.now();
  });
}

void LimitedStore::read(ReadRequest request, std::stop_token stop,
                        ReadDone done) {
  queue_.add(std::move(request), std::move(stop), std::move(done));
}

void LimitedStore::send(ReadQueue::Waiting read, TimePoint now) {
  if (metrics_ != nullptr) {
    metrics_->add(Metric::kStoreWaitNanoseconds, (now - read.asked).count());
  }
  inner_->read(std::move(read.request), std::move(read.stop),
               [this, done = std::move(read.done)](Result<void> result) {
                 hear(done, std::move(result));
               });
}

void LimitedStore::hear(const ReadDone& done, Result<void> result) {
  queue_.change([this] {
    --window_.in_flight;
    if (window_.polite) window_.polite->read_ended(clock_.now());
  });
  done(std::move(result));  // After this the store may be gone.
}

}  // namespace leat
