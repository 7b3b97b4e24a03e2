#include "leat/cli/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>

namespace leat {
namespace {

constexpr Nanoseconds kBetween = std::chrono::milliseconds(200);
/// Before that, a rate is chance.
constexpr Nanoseconds kLeastTold = std::chrono::seconds(1);

const Clock& steady_clock() {
  static const SteadyClock clock;
  return clock;
}

std::string left_text(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s left", seconds);
  if (seconds < 5400) return fmt::format("{:.0f} min left", seconds / 60);
  return fmt::format("{:.1f} h left", seconds / 3600);
}

}  // namespace

std::string progress_text(const Progress& progress, Nanoseconds taken) {
  std::string text(progress.what);
  const char* before = ": ";
  const auto add = [&](const std::string& part) {
    text += before + part;
    before = ", ";
  };
  const double seconds = std::chrono::duration<double>(taken).count();
  const bool has_rate = taken >= kLeastTold && progress.done > 0;
  if (!progress.unit.empty()) {
    add(progress.all > 0
            ? fmt::format("{:.0f} of {:.0f} {}", progress.done, progress.all,
                          progress.unit)
            : fmt::format("{:.0f} {}", progress.done, progress.unit));
    if (has_rate) add(fmt::format("{:.3g}/s", progress.done / seconds));
  }
  if (progress.all <= 0) return text;
  const double share = std::clamp(progress.done / progress.all, 0.0, 1.0);
  add(fmt::format("{:.0f} %", 100 * share));
  if (has_rate) add(left_text(seconds * (1 - share) / share));
  return text;
}

ProgressLine::ProgressLine(const CommandContext& context)
    : ProgressLine(context.err,
                   &context.err == &std::cerr && ::isatty(STDERR_FILENO) != 0,
                   steady_clock()) {}

ProgressLine::ProgressLine(std::ostream& err, bool is_terminal,
                           const Clock& clock)
    : err_(err), is_terminal_(is_terminal), clock_(clock) {}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::clear() {
  if (shown_) err_ << "\r\x1b[K" << std::flush;
  shown_.reset();
}

bool ProgressLine::is_due() {
  const TimePoint now = clock_.now();
  if (shown_ && now - *shown_ < kBetween) return false;
  shown_ = now;
  return true;
}

void ProgressLine::show(const Progress& progress) {
  if (!is_terminal_) return;
  if (what_ != progress.what) {
    what_ = progress.what;
    begun_ = clock_.now();
    shown_ = begun_;
  } else if (!is_due()) {
    return;
  }
  err_ << "\r\x1b[K" << progress_text(progress, clock_.now() - begun_)
       << std::flush;
}

void ProgressLine::show(std::string_view text) {
  if (!is_terminal_) return;
  shown_ = clock_.now();
  err_ << "\r\x1b[K" << text << std::flush;
}

}  // namespace leat
