// What a user should know though nothing failed.
#pragma once
#include <string_view>

namespace leat {

/// Writes a line to stderr: never to stdout, which is a program's own. The
/// environment's SPDLOG_LEVEL=leat=off silences it.
void log_warning(std::string_view message);

/// The same, for what is good to know and no trouble.
void log_info(std::string_view message);

/// The same, for who asks for it with SPDLOG_LEVEL=leat=debug.
void log_debug(std::string_view message);

}  // namespace leat
