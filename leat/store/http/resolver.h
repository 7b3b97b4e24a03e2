// Looks up host names outside the I/O threads.
#pragma once
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "leat/base/clock.h"
#include "leat/base/result.h"

namespace leat {

/// One address of a host; its port is 0.
struct HostAddress {
  sockaddr_storage address{};
  socklen_t size_bytes = 0;
  std::string text;  ///< "192.0.2.1" or "2001:db8::1".
};

/// The addresses of a name at some time; never empty.
struct HostAnswer {
  std::vector<HostAddress> addresses;  ///< In the order the system prefers.
  TimePoint fresh_until;
};
using HostAnswerRef = std::shared_ptr<const HostAnswer>;

/// Asks the system (getaddrinfo). Blocks, at worst for many seconds.
///
/// Errors:
///   kUnavailable  for now or for good, there is no address; the message says
///                 which
Result<std::vector<HostAddress>> ask_system_for_host(const std::string& name);

/// Looks names up one after another on a thread of its own, and keeps answers.
///
/// If a name that was known cannot be looked up, its last addresses are the
/// answer; the log says so once, and once when it is known again.
///
/// libcurl would start one thread for every lookup, and would always connect to
/// the first address.
///
/// Threads: any. Lifetime: after destruction no `done` is called any more. A
/// lookup that hangs
///           in the system cannot be interrupted; its thread is then left to
///           end by itself, and touches nothing of ours.
class Resolver {
 public:
  using Ask =
      std::function<Result<std::vector<HostAddress>>(const std::string& name)>;
  using Done = std::function<void(Result<HostAnswerRef>)>;

  static constexpr std::chrono::seconds kKeep{30};
  /// After a failed lookup, the system is not asked for the name
  /// again before this.
  static constexpr std::chrono::seconds kKeepFailure{1};
  /// If a lookup fails, the addresses known before it are fresh for this long.
  static constexpr std::chrono::seconds kKeepStale{5};

  explicit Resolver(Ask ask = ask_system_for_host);
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  /// Calls `done` once with addresses younger than `kKeep`, or the last ones
  /// that were known, now or from the resolver's thread.
  void resolve(const std::string& name, Done done);
  /// The same, but asks again even if there is a fresh answer.
  void refresh(const std::string& name, Done done);

 private:
  struct Shared;
  enum class Fresh { kKept, kAskAgain };
  void enqueue(const std::string& name, Done done, Fresh fresh);

  std::shared_ptr<Shared> shared_;
  std::jthread thread_;
};

}  // namespace leat
