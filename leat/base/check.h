// Aborts on our own bugs, and never on input of a user or a server.
#pragma once

namespace leat::internal {
[[noreturn]] void check_failed(const char* condition, const char* file,
                               int line);
}  // namespace leat::internal

/// Aborts with a message that says what to report, if `condition` is false.
#define LEAT_CHECK(condition)                                         \
  do {                                                                \
    if (!(condition)) [[unlikely]] {                                  \
      ::leat::internal::check_failed(#condition, __FILE__, __LINE__); \
    }                                                                 \
  } while (false)
