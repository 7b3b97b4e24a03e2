// What errno means for an object.
#pragma once
#include <string_view>

#include "leat/base/error.h"

namespace leat {

/// The error for `error_number` of a call on behalf of `what`; holds no path.
Error file_error(int error_number, std::string_view what);

}  // namespace leat
