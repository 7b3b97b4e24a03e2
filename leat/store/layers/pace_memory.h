// The memory of a pace, which the processes of a node may share.
#pragma once
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "leat/base/owned_fd.h"
#include "leat/store/layers/pace_state.h"

namespace leat {

/// Holds one PaceState. Several processes share it as a file of one page that
/// they map: a robust mutex, and the state. If a process died in its hold, the
/// next one begins the state anew. If the mutex is held
/// for a twentieth of a second, its holder stands still; then this process goes
/// on with a state of its own.
///
/// Each user of the file has a shared flock on it, which ends with the process.
/// The first begins the state anew, whatever others left there; the last
/// removes the file. Files and folders of other users are not used.
///
/// Threads: any.
class PaceMemory {
 public:
  /// For this process alone.
  PaceMemory();
  /// For all processes of this user that name `folder` and `service`, a text
  /// that tells services apart. If that is not possible, or no folder is named,
  /// for this process alone.
  PaceMemory(const std::string& folder, std::string_view service);
  ~PaceMemory();
  PaceMemory(const PaceMemory&) = delete;
  PaceMemory& operator=(const PaceMemory&) = delete;

  bool is_shared() const { return shared_ != nullptr; }

  /// See PaceState::rate(). Takes no lock.
  std::optional<double> rate() const;

  struct Block;
  /// The state, for this scope alone.
  class Hold {
   public:
    explicit Hold(Block& block) : block_(block) {}
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    PaceState& operator*() const;
    PaceState* operator->() const { return &**this; }

   private:
    Block& block_;
  };
  Hold hold() const;

 private:
  Block& block() const;

  const pid_t owner_ = ::getpid();
  std::string path_;
  OwnedFd file_;
  Block* mapped_ = nullptr;
  // Null: each uses its own.
  mutable std::atomic<Block*> shared_ = nullptr;
  const std::unique_ptr<Block> own_;
};

/// The folder in which the processes of this user on this node share paces;
/// empty if the system has no memory for that.
std::string pace_folder();

}  // namespace leat
