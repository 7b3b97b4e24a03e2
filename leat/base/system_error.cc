#include "leat/base/system_error.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

namespace leat {

ErrorCode code_of_errno(int number) {
  switch (number) {
    case ENOENT:
    case ENOTDIR:
      return ErrorCode::kNotFound;
    case EEXIST:
    case EILSEQ:
    case EINVAL:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case ENOTEMPTY:
    case EXDEV:
      return ErrorCode::kInvalidArgument;
    case EACCES:
    case EPERM:
    case EROFS:
      return ErrorCode::kPermissionDenied;
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOSPC:
      return ErrorCode::kResourceExhausted;
    default:  // EIO, ESTALE, ETIMEDOUT: a network file system may recover.
      return ErrorCode::kUnavailable;
  }
}

Error system_error(int number, std::string_view what) {
  return Error(
      code_of_errno(number),
      fmt::format("{}: {}", what, std::generic_category().message(number)));
}

}  // namespace leat
