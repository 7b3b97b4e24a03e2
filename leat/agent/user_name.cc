#include "leat/agent/user_name.h"

#include <pwd.h>
#include <sys/types.h>

#include <cerrno>
#include <vector>

#include "leat/agent/public_text.h"

namespace leat {
namespace {

constexpr std::size_t kMostBytes = 1 << 20;

}  // namespace

std::string user_name(std::uint32_t uid) {
  std::vector<char> place(1 << 10);
  while (true) {
    passwd entry{};
    passwd* found = nullptr;
    const int failed =
        ::getpwuid_r(uid, &entry, place.data(), place.size(), &found);
    if (failed == ERANGE && place.size() < kMostBytes) {
      place.resize(2 * place.size());
      continue;
    }
    if (failed != 0 || found == nullptr) return "";
    return public_text(found->pw_name);
  }
}

const std::string& UserNames::of(std::uint32_t uid) {
  const auto known = known_.find(uid);
  if (known != known_.end()) return known->second;
  return known_.emplace(uid, user_name(uid)).first->second;
}

}  // namespace leat
