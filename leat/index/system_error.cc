#include "leat/index/system_error.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

namespace leat {

Error system_error(int number, std::string_view doing) {
  const ErrorCode code = [&] {
    switch (number) {
      case ENOENT:
        return ErrorCode::kNotFound;
      case EACCES:
      case EPERM:
      case EROFS:
        return ErrorCode::kPermissionDenied;
      case ENOSPC:
      case EDQUOT:
      case EMFILE:
      case ENFILE:
      case ENOMEM:
        return ErrorCode::kResourceExhausted;
      default:
        return ErrorCode::kUnavailable;
    }
  }();
  return Error(code, fmt::format("{}: {}", doing,
                                 std::generic_category().message(number)));
}

}  // namespace leat
