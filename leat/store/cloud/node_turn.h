// The turn to renew credentials, among all processes of a node.
#pragma once
#include <optional>
#include <stop_token>
#include <string>

#include "leat/base/clock.h"
#include "leat/base/env.h"

namespace leat {

/// A turn: while it is held, no other process of this user on this node that
/// asks for one has it. Ends with the object, or with the process.
///
/// It is an flock on an empty file. Nothing is ever written there: credentials
/// are no state. Each rank fetches its own, one after another, so that a node
/// of eight does not ask STS or the metadata service eight times at once.
class NodeTurn {
 public:
  /// Waits for the turn, but no longer than `most`. Without a file (`path`
  /// empty, or it cannot be made) or after that time it is no turn at all:
  /// late credentials are worse than two requests at a time.
  static NodeTurn wait(const std::string& path, Nanoseconds most,
                       const std::stop_token& stop);

  NodeTurn(NodeTurn&& other) noexcept;
  NodeTurn& operator=(NodeTurn&&) = delete;
  ~NodeTurn();

  bool is_held() const { return file_ >= 0; }

 private:
  explicit NodeTurn(int file) : file_(file) {}

  int file_;
};

/// The file for it under user_cache_folder(); empty if there is no such folder.
std::string node_turn_path(const Env& env);

}  // namespace leat
