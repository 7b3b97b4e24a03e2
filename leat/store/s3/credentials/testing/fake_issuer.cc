#include "leat/store/s3/credentials/testing/fake_issuer.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "leat/store/s3/aws/sigv4_verify.h"

namespace leat::testing {
namespace {

using std::chrono::seconds;

constexpr std::string_view kImdsToken = "PLANTEDIMDSTOKEN";
constexpr std::string_view kRolePath =
    "/latest/meta-data/iam/security-credentials/";

ServerReply text(std::string body) {
  ServerReply reply;
  reply.body = std::move(body);
  return reply;
}

std::string iso(WallTime time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(time)));
}

std::string value_in(const QueryPairs& pairs, std::string_view name) {
  for (const auto& [its_name, value] : pairs) {
    if (its_name == name) return value;
  }
  return {};
}

bool is_signed_by_source(const ServerRequest& request) {
  std::vector<ReceivedRequest::Header> headers;
  for (const auto& [name, value] : request.headers) {
    headers.emplace_back(name, value);
  }
  const CheckedSignature checked = verify_signature(
      {request.method, request.target, headers},
      [](std::string_view id) {
        return id == kSourceKeyId
                   ? std::optional(Credentials{std::string(kSourceKeyId),
                                               std::string(kSourceSecret), ""})
                   : std::nullopt;
      },
      std::chrono::floor<seconds>(std::chrono::system_clock::now()));
  return checked.verdict == SignatureVerdict::kValid &&
         checked.payload_hash == sha256_hex(request.body);
}

}  // namespace

FakeIssuer::Issued FakeIssuer::issue() {
  const auto began = std::chrono::steady_clock::now();
  const MutexLock lock(mutex_);
  // An answer leaves `takes` after its request came, which was before `began`:
  // half of it is more than a busy machine adds.
  if (began + options_.takes / 2 < busy_until_) ++overlapping_;
  busy_until_ = std::max(busy_until_, began + options_.takes);
  const std::size_t number = issued_.size() + 1;
  Issued issued{{fmt::format("ASIAFAKE{:08}", number),
                 fmt::format("{}SECRETKEY{:024}", kPlanted, number),
                 fmt::format("{}SESSIONTOKEN{:081}", kPlanted, number)},
                std::chrono::ceil<seconds>(std::chrono::system_clock::now() +
                                           options_.takes + options_.lifetime)};
  issued_.emplace(issued.keys.access_key_id, issued);
  return issued;
}

ServerReply FakeIssuer::give_json(std::string_view token_name) {
  const Issued issued = issue();
  ServerReply reply = text(fmt::format(
      R"({{"Version":1,"Code":"Success","AccessKeyId":"{}",)"
      R"("SecretAccessKey":"{}","{}":"{}","Expiration":"{}"}})",
      issued.keys.access_key_id, issued.keys.secret_access_key, token_name,
      issued.keys.session_token, iso(issued.expires_at)));
  reply.delay = options_.takes;
  return reply;
}

ServerReply FakeIssuer::give_xml(const std::string& action) {
  const Issued issued = issue();
  ServerReply reply = text(fmt::format(
      "<{0}Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">"
      "<{0}Result><Credentials><AccessKeyId>{1}</AccessKeyId>"
      "<SecretAccessKey>{2}</SecretAccessKey><SessionToken>{3}</SessionToken>"
      "<Expiration>{4}</Expiration></Credentials></{0}Result></{0}Response>",
      action, issued.keys.access_key_id, issued.keys.secret_access_key,
      issued.keys.session_token, iso(issued.expires_at)));
  reply.delay = options_.takes;
  return reply;
}

/// Repeats the request, so showing it would show a secret.
ServerReply FakeIssuer::refuse(int status, std::string_view said) {
  const MutexLock lock(mutex_);
  ++refused_;
  ServerReply reply = text(fmt::format(
      "<ErrorResponse><Error><Code>AccessDenied</Code><Message>{} is not "
      "good</Message></Error></ErrorResponse>",
      said));
  reply.status = status;
  return reply;
}

ServerReply FakeIssuer::answer_instance(const ServerRequest& request) {
  if (request.method == "PUT" && request.target == "/latest/api/token") {
    return text(std::string(kImdsToken));
  }
  if (request.header("x-aws-ec2-metadata-token") != kImdsToken) {
    return refuse(401, "");
  }
  if (request.target == kRolePath) return text("fake-role");
  if (request.target == std::string(kRolePath) + "fake-role") {
    return give_json("Token");
  }
  ServerReply nothing;
  nothing.status = 404;
  return nothing;
}

ServerReply FakeIssuer::answer_sts(const ServerRequest& request) {
  const QueryPairs pairs = parse_query(request.body);
  const std::string action = value_in(pairs, "Action");
  if (action == "AssumeRole" && is_signed_by_source(request)) {
    return give_xml(action);
  }
  const std::string token = value_in(pairs, "WebIdentityToken");
  if (action == "AssumeRoleWithWebIdentity" && token == kWebIdentityToken) {
    return give_xml(action);
  }
  return refuse(403, token);
}

ServerReply FakeIssuer::answer(const ServerRequest& request) {
  if (request.target.starts_with("/latest/")) return answer_instance(request);
  if (request.target == "/container") {
    const std::string token = request.header("authorization");
    return token == kContainerToken ? give_json("Token") : refuse(403, token);
  }
  if (request.target == "/process") return give_json("SessionToken");
  return answer_sts(request);
}

std::optional<FakeIssuer::Issued> FakeIssuer::find(
    std::string_view access_key_id) const {
  const MutexLock lock(mutex_);
  const auto found = issued_.find(access_key_id);
  if (found == issued_.end()) return std::nullopt;
  return found->second;
}

std::size_t FakeIssuer::given() const {
  const MutexLock lock(mutex_);
  return issued_.size();
}

std::size_t FakeIssuer::overlapping() const {
  const MutexLock lock(mutex_);
  return overlapping_;
}

std::size_t FakeIssuer::refused() const {
  const MutexLock lock(mutex_);
  return refused_;
}

}  // namespace leat::testing
