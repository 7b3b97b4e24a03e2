#include "leat/index/job_build.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/mutex.h"
#include "leat/runtime/thread_name.h"

namespace leat {
namespace {

/// Renewals in the life of a sign: some may fail.
constexpr int kRenewals = 6;

/// Another text each time, so that its ETag is another.
std::string sign_text() {
  return fmt::format("a catalogue is being made here: {}\n",
                     std::chrono::system_clock::now().time_since_epoch() /
                         std::chrono::microseconds(1));
}

}  // namespace

Result<std::unique_ptr<BuildingSign>> BuildingSign::put_up(
    Store& store, std::string_view prefix, const TurnTimes& times,
    const std::stop_token& stop) {
  std::string key = building_key(prefix);
  LEAT_TRY_VOID(store.write(key, as_bytes(sign_text()), stop));
  return std::unique_ptr<BuildingSign>(
      new BuildingSign(store, std::move(key), times.sign_life / kRenewals));
}

BuildingSign::BuildingSign(Store& store, std::string key, Nanoseconds every)
    : store_(store),
      key_(std::move(key)),
      every_(every),
      thread_([this](const std::stop_token& stop) {
        name_this_thread("leat-sign");
        renew(stop);
      }) {}

void BuildingSign::renew(const std::stop_token& stop) {
  Mutex mutex;
  CondVar stopped;
  for (;;) {
    {
      MutexLock lock(mutex);
      stopped.wait_for(lock, stop, every_, [] { return false; });
    }
    if (stop.stop_requested()) return;
    // If it fails, the next one may not.
    (void)store_.write(key_, as_bytes(sign_text()), stop);
  }
}

FirstNode::FirstNode(const PublishedPlace& place,
                     const CatalogueOptions& options,
                     const OpenedCatalogue* outdated)
    : place_(place), options_(options), outdated_(outdated), renewed_(begin_) {}

Result<Sight> FirstNode::look(const std::stop_token& stop) {
  const TimePoint now = clock_.now();
  if (asked_ && now - *asked_ < options_.times.pace) return sight_;
  asked_ = now;
  LEAT_TRY(sight_, ask(now, stop));
  return sight_;
}

Result<Sight> FirstNode::ask(TimePoint now, const std::stop_token& stop) {
  LEAT_TRY(found_, find_published(place_, options_, stop));
  if (found_ && outdated_ != nullptr &&
      found_->listed_at == outdated_->listed_at &&
      found_->catalogue->digest() == outdated_->catalogue->digest()) {
    found_.reset();
  }
  if (found_) return Sight::kThere;
  const auto sign = place_.store.stat(building_key(place_.prefix), stop);
  if (sign && sign->etag != sign_) {
    sign_ = sign->etag;
    renewed_ = now;
  }
  const Nanoseconds patience =
      sign_.empty() ? options_.times.sign : options_.times.sign_life;
  return now - renewed_ < patience ? Sight::kComing : Sight::kNothing;
}

}  // namespace leat
