#include "leat/store/cloud/ranged_get.h"

#include <utility>

#include "leat/store/cloud/checks.h"
#include "leat/store/http/content_range.h"
#include "leat/store/http/object_checksum.h"

namespace leat {
namespace {

Result<void> judge(const RangedGet& get, const ReadRequest& request,
                   Result<AuthorizedReply> reply) {
  const std::string doing = reading(get.url, request);
  LEAT_TRY(const HttpReply http,
           judge_call(doing, std::move(reply), get.error_of));
  Result<void> right = check_carried(http, request, get.tag);
  if (right) right = check_object_checksum(http, request.into);
  if (!right) return std::move(right).error().while_doing(doing);
  return {};
}

}  // namespace

void send_ranged_get(AuthorizedHttp& http, RangedGet get, ReadRequest request,
                     std::stop_token stop, ReadDone done) {
  HttpRequest sent = std::move(get.http);
  sent.headers.push_back(range_header(request.offset, request.into.size()));
  sent.into = request.into;
  sent.attempt = request.attempt;
  http.send(std::move(sent), std::move(stop),
            [get = std::move(get), request = std::move(request),
             done = std::move(done)](Result<AuthorizedReply> reply) {
              done(judge(get, request, std::move(reply)));
            });
}

}  // namespace leat
