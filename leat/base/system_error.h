// Errors of the operating system.
#pragma once
#include <string_view>

#include "leat/base/error.h"

namespace leat {

/// The error code for an errno: ENOENT is kNotFound, ENOSPC is
/// kResourceExhausted, and errors that may pass by themselves (EIO, ESTALE) are
/// kUnavailable.
ErrorCode code_of_errno(int number);

/// "<what>: <what errno says>", with the code that fits. Names no path unless
/// `what` does.
Error system_error(int number, std::string_view what);

}  // namespace leat
