// The read of a range of an object, from a service that speaks HTTP.
#pragma once
#include <stop_token>
#include <string>

#include "leat/store/cloud/authorized_http.h"
#include "leat/store/cloud/judge.h"
#include "leat/store/store.h"

namespace leat {

/// The differences between services.
struct RangedGet {
  std::string url;   ///< The object's, for messages.
  HttpRequest http;  ///< The request for the whole object.
  VersionTag tag;
  /// Outlives the read.
  const ErrorOfReply& error_of;
};

/// Sends `get` for the range that `request` asks for, and answers `done`.
///
/// Errors: as AuthorizedHttp::send(), `error_of`, check_carried(),
///         check_object_checksum()
/// REQUIRES: check_read() of `request`.
void send_ranged_get(AuthorizedHttp& http, RangedGet get, ReadRequest request,
                     std::stop_token stop, ReadDone done);

}  // namespace leat
