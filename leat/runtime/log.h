// Messages for the user that are not failures.
#pragma once
#include <cstdint>
#include <string_view>

namespace leat {

/// Writes a line to stderr, never to stdout, which belongs to the program. The
/// environment's SPDLOG_LEVEL=leat=off silences it.
void log_warning(std::string_view message);

/// The same, for good news.
void log_info(std::string_view message);

/// The same, for users who set SPDLOG_LEVEL=leat=debug.
void log_debug(std::string_view message);

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning };

/// Receives lines in place of stderr, if SPDLOG_LEVEL lets them pass. Called
/// from any thread that logs and may hold locks, so it must not block.
using LogSink = void (*)(LogLevel level, std::string_view message);

/// Null: back to stderr.
void set_log_sink(LogSink sink);

}  // namespace leat
