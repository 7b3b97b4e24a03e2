// Errors of the operating system on files of this machine.
#pragma once
#include <string_view>

#include "leat/base/result.h"

namespace leat {

/// "<doing>: <what errno says>", with the code that fits.
Error system_error(int number, std::string_view doing);

}  // namespace leat
