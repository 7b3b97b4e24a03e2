// A sign of life of what takes long.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include "leat/base/clock.h"
#include "leat/cli/command.h"

namespace leat {

/// So much of something is done.
struct Progress {
  std::string_view what;  ///< "epoch 1 of 2"
  double done = 0;
  double all = 0;              ///< 0: not known.
  std::string_view unit = "";  ///< "samples"; empty: only the share is told.
};

/// "epoch 1 of 2: 512 of 10,000 samples, 538/s, 5 %, 18 s left". The rate and
/// the time left are shown once they can be computed.
std::string progress_text(const Progress& progress, Nanoseconds taken);

/// A line on standard error that is written over and over, if that is a
/// terminal: at most five times a second, and when something else begins.
/// Destruction clears it.
///
/// Threads: one at a time.
class ProgressLine {
 public:
  explicit ProgressLine(const CommandContext& context);
  /// For tests: `clock` outlives it.
  ProgressLine(std::ostream& err, bool is_terminal, const Clock& clock);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const Progress& progress);
  /// For work that nobody can count: at once, as nothing may follow for long.
  void show(std::string_view text);
  /// Before others write to the same stream.
  void clear();

 private:
  bool is_due();

  std::ostream& err_;
  const bool is_terminal_;
  const Clock& clock_;
  std::string what_;  ///< The thing that `begun_` is the beginning of.
  TimePoint begun_;
  std::optional<TimePoint> shown_;
};

}  // namespace leat
