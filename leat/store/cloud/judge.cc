#include "leat/store/cloud/judge.h"

#include <utility>

#include "leat/base/errors.h"
#include "leat/store/http/content_range.h"
#include "leat/store/http/status.h"

namespace leat {

Result<void> check_carried(const HttpReply& reply, const ReadRequest& request,
                           const VersionTag& tag) {
  LEAT_TRY_VOID(
      check_range(reply, request.object, request.offset, request.into.size()));
  const std::string& wanted = request.object.etag;
  const std::string_view carried = reply.header(tag.header);
  if (wanted.empty() || carried.empty() || same_version(carried, wanted)) {
    return {};
  }
  return corrupt(
      "the object changed since it was indexed (its {} is no longer {}); index "
      "again",
      tag.name, wanted);
}

Result<HttpReply> judge_call(const std::string& doing,
                             Result<AuthorizedReply> reply,
                             const ErrorOfReply& error_of) {
  if (!reply) return std::move(reply).error().while_doing(doing);
  if (!is_success(reply->http.status)) return error_of(*reply, doing);
  return std::move(reply->http);
}

}  // namespace leat
