#include "leat/bucket/file_error.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

namespace leat {
namespace {

ErrorCode code_of(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      return ErrorCode::kNotFound;
    case EISDIR:
    case ENAMETOOLONG:
    case EEXIST:
    case ENOTEMPTY:
    case ELOOP:
    case EILSEQ:
    case EINVAL:
      return ErrorCode::kInvalidArgument;
    case EACCES:
    case EPERM:
    case EROFS:
      return ErrorCode::kPermissionDenied;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case EFBIG:
      return ErrorCode::kResourceExhausted;
    default:
      return ErrorCode::kUnavailable;
  }
}

}  // namespace

Error file_error(int error_number, std::string_view what) {
  return Error(code_of(error_number),
               fmt::format("{}: {}", what,
                           std::generic_category().message(error_number)));
}

}  // namespace leat
