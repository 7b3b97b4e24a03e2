#include "leat/store/known_endpoints.h"

#include <string_view>

namespace leat {
namespace {

std::string without_path(const std::string& endpoint) {
  constexpr std::string_view kSlashes = "://";
  const std::size_t scheme = endpoint.find(kSlashes);
  const std::size_t host =
      scheme == std::string::npos ? 0 : scheme + kSlashes.size();
  return endpoint.substr(0, endpoint.find('/', host));
}

}  // namespace

std::shared_ptr<KnownEndpoint> KnownEndpoints::of(const std::string& endpoint,
                                                  TimePoint now) {
  const MutexLock lock(mutex_);
  std::erase_if(known_, [&](const auto& entry) {
    return entry.second.use_count() == 1 &&
           !entry.second->answered_recently(now);
  });
  auto& one = known_[without_path(endpoint)];
  if (one == nullptr) one = std::make_shared<KnownEndpoint>();
  return one;
}

std::size_t KnownEndpoints::count() const {
  const MutexLock lock(mutex_);
  return known_.size();
}

}  // namespace leat
