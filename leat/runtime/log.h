// Messages for the user about things that are no failures.
#pragma once
#include <cstdint>
#include <string_view>

namespace leat {

/// Writes a line to stderr: never to stdout, which is a program's own. The
/// environment's SPDLOG_LEVEL=leat=off silences it.
void log_warning(std::string_view message);

/// The same, for good news.
void log_info(std::string_view message);

/// The same, for users who set SPDLOG_LEVEL=leat=debug.
void log_debug(std::string_view message);

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning };

/// Takes the lines in the place of stderr, those that SPDLOG_LEVEL lets pass.
/// Called from any thread that logs, which may hold locks: it must not block.
using LogSink = void (*)(LogLevel level, std::string_view message);

/// Null: to stderr again.
void set_log_sink(LogSink sink);

}  // namespace leat
