// Errors by the name of their code: `return invalid("threads={} is too many",
// threads);`.
#pragma once
#include <fmt/format.h>

#include <string>
#include <utility>

#include "leat/base/error.h"

namespace leat {

/// Alone, the message is taken as it is; with values, it is a format of fmt.
#define LEAT_ERROR_NAMED(name, code)                                    \
  inline Error name(std::string message) {                              \
    return {code, std::move(message)};                                  \
  }                                                                     \
  template <class First, class... More>                                 \
  Error name(fmt::format_string<First, More...> message, First&& first, \
             More&&... more) {                                          \
    return {code, fmt::format(message, std::forward<First>(first),      \
                              std::forward<More>(more)...)};            \
  }

LEAT_ERROR_NAMED(invalid, ErrorCode::kInvalidArgument)
LEAT_ERROR_NAMED(not_found, ErrorCode::kNotFound)
LEAT_ERROR_NAMED(denied, ErrorCode::kPermissionDenied)
LEAT_ERROR_NAMED(unavailable, ErrorCode::kUnavailable)
LEAT_ERROR_NAMED(exhausted, ErrorCode::kResourceExhausted)
LEAT_ERROR_NAMED(corrupt, ErrorCode::kCorrupt)
#undef LEAT_ERROR_NAMED

}  // namespace leat
