#include "leat/cli/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <system_error>

#include "leat/runtime/thread_name.h"

namespace leat {
namespace {

constexpr Nanoseconds kBetween = std::chrono::milliseconds(200);
constexpr Nanoseconds kBetweenLogLines = std::chrono::seconds(10);
/// Before that, a rate is chance.
constexpr Nanoseconds kLeastTold = std::chrono::seconds(1);

const Clock& steady_clock() {
  static const SteadyClock clock;
  return clock;
}

/// Other streams are those of tests, which want what a command says at last.
ProgressScreen screen_of(const CommandContext& context) {
  if (&context.err != &std::cerr) return ProgressScreen::kNone;
  return ::isatty(STDERR_FILENO) != 0 ? ProgressScreen::kTerminal
                                      : ProgressScreen::kLog;
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
    : ProgressLine(context.err, screen_of(context), steady_clock()) {
  if (screen_ != ProgressScreen::kLog) return;
  try {
    writer_ = std::jthread([this](const std::stop_token& stop) {
      name_this_thread("leat-progress");
      write_to_log_until(stop);
    });
  } catch (const std::system_error&) {
    // If no thread can be started, the work matters more.
  }
}

ProgressLine::ProgressLine(std::ostream& err, ProgressScreen screen,
                           const Clock& clock)
    : err_(err), screen_(screen), clock_(clock) {}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::clear() {
  const MutexLock lock(mutex_);
  if (shown_ && screen_ == ProgressScreen::kTerminal) {
    err_ << "\r\x1b[K" << std::flush;
  }
  shown_.reset();
  text_.clear();
}

bool ProgressLine::is_due() {
  const TimePoint now = clock_.now();
  if (shown_ && now - *shown_ < kBetween) return false;
  shown_ = now;
  return true;
}

void ProgressLine::show(const Progress& progress) {
  if (screen_ == ProgressScreen::kNone) return;
  const MutexLock lock(mutex_);
  if (what_ != progress.what) {
    what_ = progress.what;
    begun_ = clock_.now();
    shown_ = begun_;
  } else if (!is_due()) {
    return;
  }
  is_counted_ = true;
  text_ = progress_text(progress, clock_.now() - begun_);
  if (screen_ == ProgressScreen::kTerminal) {
    err_ << "\r\x1b[K" << text_ << std::flush;
  }
}

void ProgressLine::show(std::string_view text) {
  if (screen_ == ProgressScreen::kNone) return;
  const MutexLock lock(mutex_);
  if (is_counted_ || text_ != text) begun_ = clock_.now();
  is_counted_ = false;
  what_.clear();
  shown_ = clock_.now();
  text_ = text;
  if (screen_ == ProgressScreen::kTerminal) {
    err_ << "\r\x1b[K" << text << std::flush;
  }
}

void ProgressLine::write_to_log() {
  const MutexLock lock(mutex_);
  if (screen_ != ProgressScreen::kLog || text_.empty()) return;
  const double seconds =
      std::chrono::duration<double>(clock_.now() - begun_).count();
  const std::string since =
      is_counted_ ? "" : fmt::format(", for {:.0f} s now", seconds);
  err_ << fmt::format("leat: {}{}\n", text_, since) << std::flush;
}

void ProgressLine::write_to_log_until(const std::stop_token& stop) {
  while (true) {
    {
      MutexLock lock(mutex_);
      ends_.wait_for(lock, stop, kBetweenLogLines, [] { return false; });
    }
    if (stop.stop_requested()) return;
    write_to_log();
  }
}

}  // namespace leat
