// The name of the user who runs a job, for display instead of the number.
#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace leat {

/// The login name of `uid`, without control characters; empty if the machine
/// knows none. Blocks: the name may come over a network.
std::string user_name(std::uint32_t uid);

/// Looks up each name once.
///
/// Threads: one.
class UserNames {
 public:
  const std::string& of(std::uint32_t uid);

 private:
  std::map<std::uint32_t, std::string> known_;
};

}  // namespace leat
