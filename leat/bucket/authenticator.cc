#include "leat/bucket/authenticator.h"

#include <utility>

#include "leat/serve/asked_host.h"

namespace leat {
namespace {

/// From the header or, for a presigned URL, from the query.
std::string token_of(const RequestHead& head) {
  constexpr std::string_view kName = "x-amz-security-token";
  if (const auto token = head.header(kName); !token.empty()) {
    return std::string(token);
  }
  const std::size_t question = head.target.find('?');
  if (question == std::string_view::npos) return {};
  for (auto& [name, value] : parse_query(head.target.substr(question + 1))) {
    if (name == "X-Amz-Security-Token") return value;
  }
  return {};
}

}  // namespace

std::optional<S3Error> Authenticator::check_token(
    const RequestHead& head) const {
  const std::string expected =
      options_.credentials ? options_.credentials->session_token : "";
  if (options_.expired_token.empty() && expected.empty()) return std::nullopt;
  const std::string token = token_of(head);
  if (!options_.expired_token.empty() && token == options_.expired_token) {
    return s3_error(S3Code::kExpiredToken);
  }
  if (!expected.empty() && !equal_in_constant_time(token, expected)) {
    return s3_error(S3Code::kInvalidToken);
  }
  return std::nullopt;
}

namespace {

Authenticator::Admission judge(CheckedSignature checked) {
  switch (checked.verdict) {
    case SignatureVerdict::kValid:
      return {std::nullopt, std::move(checked.payload_hash)};
    case SignatureVerdict::kAnonymous:
      return {s3_error(S3Code::kAccessDenied), {}};
    default:
      return {
          S3Error{s3_error_code(checked.verdict),
                  s3_error_status(checked.verdict), std::move(checked.reason)},
          {}};
  }
}

}  // namespace

Authenticator::Admission Authenticator::admit_temporary(const RequestHead& head,
                                                        WallTime now) const {
  std::optional<TemporaryCredentials> whose;
  const auto find = [&](std::string_view id) -> std::optional<Credentials> {
    whose = options_.find_temporary(id);
    if (!whose) return std::nullopt;
    return whose->keys;
  };
  Admission admission = judge(verify_signature(
      {.method = head.method, .target = head.target, .headers = head.headers},
      find, now));
  if (admission.refusal) return admission;
  if (!equal_in_constant_time(token_of(head), whose->keys.session_token)) {
    return {s3_error(S3Code::kInvalidToken), {}};
  }
  if (now >= whose->expires_at) return {s3_error(S3Code::kExpiredToken), {}};
  return admission;
}

std::optional<S3Error> Authenticator::check_page(
    const RequestHead& head) const {
  if (!is_of_own_page(head)) {
    return s3_error(S3Code::kAccessDenied,
                    "A web page of another place sends this request.");
  }
  const bool is_signed = options_.credentials || options_.find_temporary;
  const std::string_view host = head.header("host");  // Browsers send one.
  if (is_signed || host.empty() || may_ask_for(host, options_.names)) {
    return std::nullopt;
  }
  return s3_error(S3Code::kAccessDenied,
                  "Without a signature this server answers to addresses, to "
                  "localhost and to the names it was told, not to this Host.");
}

Authenticator::Admission Authenticator::admit(const RequestHead& head,
                                              WallTime now) const {
  if (auto refusal = check_page(head)) return {std::move(refusal), {}};
  if (options_.find_temporary) return admit_temporary(head, now);
  if (!options_.credentials) return {check_token(head), {}};
  const auto find = [this](std::string_view id) {
    return id == options_.credentials->access_key_id
               ? options_.credentials
               : std::optional<Credentials>();
  };
  CheckedSignature checked = verify_signature(
      {.method = head.method, .target = head.target, .headers = head.headers},
      find, now);
  // An anonymous client is not asked for a token.
  if (checked.verdict != SignatureVerdict::kAnonymous) {
    if (auto refusal = check_token(head)) return {std::move(refusal), {}};
  }
  return judge(std::move(checked));
}

}  // namespace leat
