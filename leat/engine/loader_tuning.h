// The thread that tunes a loader while it runs.
#pragma once
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "leat/base/mutex.h"
#include "leat/base/result.h"
#include "leat/tune/tuner.h"

namespace leat {

/// Shows a Tuner twice a second what a loader does, and carries out its
/// decisions. Each decision is logged at debug level.
///
/// Threads: any. Lifetime: the objects that the hooks use must outlive it, or
/// the call of end().
class LoaderTuning {
 public:
  struct Hooks {
    std::function<Observation()> observe;
    std::function<void(const Settings&)> apply;
  };

  /// Starts the thread. `trace` is a file for the observations, one a line,
  /// which replaces an existing one; empty: none.
  ///
  /// Errors:
  ///   kNotFound, kPermissionDenied, ...  the file cannot be made
  static Result<std::unique_ptr<LoaderTuning>> begin(Hooks hooks,
                                                     const std::string& trace);
  ~LoaderTuning();
  LoaderTuning(const LoaderTuning&) = delete;
  LoaderTuning& operator=(const LoaderTuning&) = delete;

  /// Ends the thread; its decisions can still be read. May be called twice, by
  /// one thread at a time.
  void end();

  std::vector<Decision> decisions() const;
  std::optional<Explanation> explanation() const;

 private:
  LoaderTuning(Hooks hooks, std::FILE* trace);
  void run(const std::stop_token& stop);
  void look();
  void write(const Observation& seen);

  const Hooks hooks_;
  std::FILE* const trace_;  // Used by the thread, until end(). May be null.

  mutable Mutex mutex_;
  CondVar stopped_;
  Tuner tuner_ LEAT_GUARDED_BY(mutex_);
  std::jthread thread_;  // Last: joined before the rest dies.
};

}  // namespace leat
