#include "leat/store/recent_answers.h"

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

std::shared_ptr<LastAnswer> RecentAnswers::of(const std::string& endpoint,
                                              TimePoint now) {
  const MutexLock lock(mutex_);
  std::erase_if(known_, [&](const auto& one) {
    return one.second.use_count() == 1 && !one.second->is_recent(now);
  });
  auto& last = known_[without_path(endpoint)];
  if (last == nullptr) last = std::make_shared<LastAnswer>();
  return last;
}

std::size_t RecentAnswers::count() const {
  const MutexLock lock(mutex_);
  return known_.size();
}

}  // namespace leat
