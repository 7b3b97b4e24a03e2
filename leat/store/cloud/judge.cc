#include "leat/store/cloud/judge.h"

#include <fmt/format.h>

#include <utility>

#include "leat/store/http/content_range.h"
#include "leat/store/http/status.h"

namespace leat {

Result<void> check_carried(const HttpReply& reply, const ReadRequest& request,
                           const VersionTag& tag) {
  LEAT_TRY_VOID(check_range(reply, request.offset, request.into.size()));
  const std::string& wanted = request.object.etag;
  const std::string_view carried = reply.header(tag.header);
  if (wanted.empty() || carried.empty() || same_version(carried, wanted)) {
    return {};
  }
  return Error(ErrorCode::kCorrupt,
               fmt::format("the object changed since it was indexed (its {} "
                           "is no longer {}); index again",
                           tag.name, wanted));
}

Result<void> judge_read(const ReadRequest& request, const std::string& doing,
                        Result<AuthorizedReply> reply, const VersionTag& tag,
                        const ErrorOfReply& error_of) {
  LEAT_TRY(const HttpReply http, judge_call(doing, std::move(reply), error_of));
  Result<void> carried = check_carried(http, request, tag);
  if (!carried) return std::move(carried).error().while_doing(doing);
  return {};
}

Result<HttpReply> judge_call(const std::string& doing,
                             Result<AuthorizedReply> reply,
                             const ErrorOfReply& error_of) {
  if (!reply) return std::move(reply).error().while_doing(doing);
  if (!is_success(reply->http.status)) return error_of(*reply, doing);
  return std::move(reply->http);
}

}  // namespace leat
