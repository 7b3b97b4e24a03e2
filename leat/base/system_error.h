// Errors of the operating system.
#pragma once
#include <string_view>

#include "leat/base/error.h"

namespace leat {

/// What an errno means for who asked: ENOENT is kNotFound, ENOSPC
/// kResourceExhausted; what may pass by itself (EIO, ESTALE), kUnavailable.
ErrorCode code_of_errno(int number);

/// "<what>: <what errno says>", with the code that fits. Names no path unless
/// `what` does.
Error system_error(int number, std::string_view what);

}  // namespace leat
