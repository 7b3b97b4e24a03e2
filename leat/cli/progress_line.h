// A sign of life of what takes long.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include "leat/base/clock.h"
#include "leat/base/mutex.h"
#include "leat/cli/command.h"

namespace leat {

/// The part of a task that is done.
struct Progress {
  std::string_view what;  ///< "epoch 1 of 2"
  double done = 0;
  double all = 0;              ///< 0: not known.
  std::string_view unit = "";  ///< "samples"; empty: only the share is told.
};

/// "epoch 1 of 2: 512 of 10,000 samples, 538/s, 5 %, 18 s left". The rate and
/// the time left are shown once they can be computed.
std::string progress_text(const Progress& progress, Nanoseconds taken);

/// The place where progress is shown.
enum class ProgressScreen : std::uint8_t {
  /// One line that is written over and over: at most five times a second, and
  /// when something else begins. Destruction clears it.
  kTerminal,
  /// A file or a pipe, such as a batch job's log: a line of its own every 10 s.
  /// Work that is shorter leaves no line.
  kLog,
  kNone
};

/// Tells on standard error how far a command is.
///
/// Threads: one at a time; in a log a thread of its own, "leat-progress",
/// writes the lines, so that one comes even if nothing is counted for long.
class ProgressLine {
 public:
  explicit ProgressLine(const CommandContext& context);
  /// For tests: `clock` outlives it, and no thread is started.
  ProgressLine(std::ostream& err, ProgressScreen screen, const Clock& clock);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const Progress& progress);
  /// For work that nobody can count: at once, as nothing may follow for long.
  void show(std::string_view text);
  /// Before others write to the same stream.
  void clear();

  /// Writes the line that is due in a log. Any thread.
  void write_to_log();

 private:
  void write_to_log_until(const std::stop_token& stop);
  bool is_due() LEAT_REQUIRES(mutex_);

  std::ostream& err_;
  const ProgressScreen screen_;
  const Clock& clock_;
  Mutex mutex_;
  CondVar ends_;
  /// The thing that `begun_` is the beginning of.
  std::string what_ LEAT_GUARDED_BY(mutex_);
  TimePoint begun_ LEAT_GUARDED_BY(mutex_);
  std::optional<TimePoint> shown_ LEAT_GUARDED_BY(mutex_);
  /// For a log: the text to write when a line is due; empty: nothing runs.
  std::string text_ LEAT_GUARDED_BY(mutex_);
  bool is_counted_ LEAT_GUARDED_BY(mutex_) = false;
  std::jthread writer_;
};

}  // namespace leat
