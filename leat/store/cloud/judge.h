// The outcome of a request, by the reply of a cloud.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "leat/base/result.h"
#include "leat/store/cloud/authorized_http.h"
#include "leat/store/store.h"

namespace leat {

/// The tag by which a service tells versions of an object apart.
struct VersionTag {
  std::string_view header;  ///< The reply has it here; in lower case.
  std::string_view name;    ///< For messages.
};
inline constexpr VersionTag kEtag{.header = "etag", .name = "ETag"};

/// Checks that a success carries the range and the version that `request` asks
/// for: not every server knows the precondition. A reply that names no version
/// passes. REQUIRES: its body has filled `request.into`.
///
/// Errors:
///   kCorrupt  it is of another version; and as check_range()
Result<void> check_carried(const HttpReply& reply, const ReadRequest& request,
                           const VersionTag& tag);

/// The error of a reply that is not a success. `doing`: "reading gs://…".
using ErrorOfReply =
    std::function<Error(const AuthorizedReply& reply, std::string doing)>;

/// The reply to a request, if it is a success.
///
/// Errors: as AuthorizedHttp::send(), `error_of`
Result<HttpReply> judge_call(const std::string& doing,
                             Result<AuthorizedReply> reply,
                             const ErrorOfReply& error_of);

}  // namespace leat
