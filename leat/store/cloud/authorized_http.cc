#include "leat/store/cloud/authorized_http.h"

#include <utility>

#include "leat/store/reply_box.h"

namespace leat {

void AuthorizedHttp::send(HttpRequest request, std::stop_token stop,
                          Done done) {
  CredentialsRef who = credentials_ ? credentials_->current() : nullptr;
  if (who || !credentials_) {
    return send_as(std::move(who), std::move(request), std::move(stop),
                   std::move(done));
  }
  credentials_->when_ready(
      stop, [this, request = std::move(request), stop,
             done = std::move(done)](Result<CredentialsRef> got) mutable {
        if (!got) return done(std::move(got).error());
        send_as(*std::move(got), std::move(request), std::move(stop),
                std::move(done));
      });
}

void AuthorizedHttp::send_as(CredentialsRef who, HttpRequest request,
                             std::stop_token stop, Done done) {
  std::chrono::seconds clock_offset{0};
  if (who) clock_offset = authorize_(*who, request);
  http_->send(std::move(request), std::move(stop),
              [this, clock_offset, who = std::move(who),
               done = std::move(done)](Result<HttpReply> reply) {
                if (!reply) return done(std::move(reply).error());
                AuthorizedReply answer{.http = *std::move(reply),
                                       .clock_offset = clock_offset};
                answer.has_newer = answer.http.status == 401 && who &&
                                   credentials_->reject(who);
                done(std::move(answer));
              });
}

Result<AuthorizedReply> AuthorizedHttp::send_and_wait(HttpRequest request,
                                                      std::stop_token stop) {
  ReplyBox<Result<AuthorizedReply>> box;
  send(std::move(request), std::move(stop),
       [&box](Result<AuthorizedReply> reply) { box.put(std::move(reply)); });
  return box.take();
}

std::chrono::seconds send_bearer_token(const Credentials& who,
                                       HttpRequest& request) {
  request.headers.push_back("Authorization: Bearer " + who.bearer_token);
  return std::chrono::seconds(0);
}

}  // namespace leat
