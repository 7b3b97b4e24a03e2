#include "leat/store/testing/faulty_store.h"

#include <utility>

#include "leat/base/check.h"
#include "leat/base/hash.h"

namespace leat::testing {

std::optional<Error> FaultyStore::fault(FaultyCall::Kind kind,
                                        std::string_view key,
                                        std::uint32_t attempt) {
  return script_(FaultyCall{
      .kind = kind, .nth = calls_++, .key = key, .attempt = attempt});
}

void FaultyStore::read(ReadRequest request, std::stop_token stop,
                       ReadDone done) {
  if (auto error =
          fault(FaultyCall::Kind::kRead, request.object.key, request.attempt)) {
    return done(*std::move(error));
  }
  inner_->read(std::move(request), std::move(stop), std::move(done));
}

Result<ListPage> FaultyStore::list(const ListRequest& request,
                                   std::stop_token stop) {
  if (auto error = fault(FaultyCall::Kind::kList, request.prefix)) {
    return *std::move(error);
  }
  return inner_->list(request, std::move(stop));
}

Result<ObjectInfo> FaultyStore::write(std::string_view key,
                                      std::span<const std::byte> bytes,
                                      std::stop_token stop) {
  if (auto error = fault(FaultyCall::Kind::kWrite, key)) {
    return *std::move(error);
  }
  return inner_->write(key, bytes, std::move(stop));
}

Result<ObjectInfo> FaultyStore::stat(std::string_view key,
                                     std::stop_token stop) {
  if (auto error = fault(FaultyCall::Kind::kStat, key)) {
    return *std::move(error);
  }
  return inner_->stat(key, std::move(stop));
}

FaultyStore::Script fail_first(std::uint64_t count, ErrorCode code) {
  return [count, code](const FaultyCall& call) -> std::optional<Error> {
    if (call.nth >= count) return std::nullopt;
    return Error(code, "a fault of the test");
  };
}

FaultyStore::Script fail_share(double share, ErrorCode code,
                               std::uint64_t seed) {
  return [=](const FaultyCall& call) -> std::optional<Error> {
    const double draw =
        static_cast<double>(mix64(seed + call.nth)) / 18446744073709551616.0;
    if (draw >= share) return std::nullopt;
    return Error(code, "a fault of the test");
  };
}

HeldStore::~HeldStore() {
  const MutexLock lock(mutex_);
  LEAT_CHECK(held_.empty());
}

void HeldStore::read(ReadRequest request, std::stop_token stop, ReadDone done) {
  const MutexLock lock(mutex_);
  held_.push_back({.request = std::move(request),
                   .stop = std::move(stop),
                   .done = std::move(done)});
  changed_.notify_all();
}

std::vector<std::string> HeldStore::held() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> keys;
  for (const Held& read : held_) keys.push_back(read.request.object.key);
  return keys;
}

void HeldStore::wait_for(std::size_t count) const {
  MutexLock lock(mutex_);
  while (held_.size() < count) changed_.wait(lock);
}

HeldStore::Held HeldStore::take_oldest() {
  wait_for(1);
  const MutexLock lock(mutex_);
  Held oldest = std::move(held_.front());
  held_.erase(held_.begin());
  return oldest;
}

void HeldStore::release_one() {
  Held read = take_oldest();
  inner_->read(std::move(read.request), std::move(read.stop),
               std::move(read.done));
}

void HeldStore::fail_one(Error error) { take_oldest().done(std::move(error)); }

}  // namespace leat::testing
