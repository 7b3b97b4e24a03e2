#include "leat/store/cloud/node_turn.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "leat/base/pause.h"
#include "leat/runtime/trust.h"

namespace leat {
namespace {

constexpr std::chrono::milliseconds kTick{10};

int open_file(const std::string& path) {
  if (path.empty()) return -1;
  (void)make_own_folder(std::filesystem::path(path).parent_path());
  return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

}  // namespace

NodeTurn NodeTurn::wait(const std::string& path, Nanoseconds most,
                        const std::stop_token& stop) {
  const int file = open_file(path);
  if (file < 0) return NodeTurn(-1);
  const SteadyClock clock;
  const TimePoint deadline = clock.now() + most;
  // Not the flock that blocks: nothing would end it.
  while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    const bool may_pass = errno == EWOULDBLOCK || errno == EINTR;
    if (!may_pass || clock.now() >= deadline || !pause_for(kTick, stop)) {
      ::close(file);
      return NodeTurn(-1);
    }
  }
  return NodeTurn(file);
}

NodeTurn::NodeTurn(NodeTurn&& other) noexcept
    : file_(std::exchange(other.file_, -1)) {}

NodeTurn::~NodeTurn() {
  if (file_ >= 0) ::close(file_);
}

std::string node_turn_path(const Env& env) {
  const auto folder = user_cache_folder(env);
  return folder ? *folder + "/credentials.lock" : std::string();
}

}  // namespace leat
