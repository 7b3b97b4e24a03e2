// A memcached process of our own, which ends when we do.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "leat/base/env.h"
#include "leat/base/mutex.h"
#include "leat/base/result.h"
#include "leat/cache/memcached/server_folder.h"

namespace leat {

struct ServerProcessOptions {
  /// The only address to listen on. Anyone who can reach it can read and write
  /// the server's values, so use loopback, or the address in the job's own
  /// network.
  std::string address = "127.0.0.1";
  /// 0 lets the system choose a free one.
  std::uint16_t port = 0;
  std::uint64_t memory_bytes = std::uint64_t{64} << 20;
  std::uint32_t threads = 4;
  /// At a time; memcached silently lets others wait.
  std::uint32_t connections = 1024;
  /// How long it may take to start listening.
  std::chrono::milliseconds patience{10'000};
};

/// Runs `memcached -M -I 8m` from the user's PATH, with none of our environment
/// and none of our files.
///
/// Its folder in TMPDIR is removed with us or, if we were killed, when the next
/// one is started.
///
/// The kernel kills it when the thread that started it ends (PR_SET_PDEATHSIG).
/// That thread is ours and waits for it, so nothing is left behind, however we
/// end. A server that ends before us is reported in the log and restarted,
/// empty, at the same address.
///
/// Lifetime: destruction ends the server and waits for that. In a forked child
///           it does nothing.
class ServerProcess {
 public:
  /// Blocks until it listens.
  ///
  /// Errors:
  ///   kNotFound           there is no memcached in PATH; says how to get it
  ///   kInvalidArgument    `memory_bytes` is less than 16 MiB
  ///   kUnavailable        it ended, or does not listen; the message holds what
  ///                       it said
  static Result<std::unique_ptr<ServerProcess>> start(
      const ServerProcessOptions& options, const Env& env);
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  /// "address:port".
  const std::string& name() const { return name_; }
  /// 0 while it is not running.
  pid_t pid() const;

 private:
  ServerProcess(ServerProcessOptions options, std::string program,
                ServerFolder folder);

  void keep(const std::stop_token& stop);
  void spawn(const std::stop_token& stop);
  Result<void> wait_until_it_listens();
  std::string what_it_said() const;

  ServerProcessOptions options_;  // The port is known once it listens.
  const std::string program_;
  const ServerFolder folder_;  // The folder for its output; we remove it.
  const pid_t owner_;
  std::string name_;

  mutable Mutex mutex_;
  CondVar changed_;
  pid_t pid_ LEAT_GUARDED_BY(mutex_) = 0;
  std::uint32_t ends_ LEAT_GUARDED_BY(mutex_) = 0;  // How often it has ended.
  std::jthread keeper_;  // Last: joined before the rest dies.
};

}  // namespace leat
