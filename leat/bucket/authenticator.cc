#include "leat/bucket/authenticator.h"

#include <utility>

namespace leat {
namespace {

/// From the header or, of a presigned URL, from the query.
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

Authenticator::Admission Authenticator::admit(const RequestHead& head,
                                              WallTime now) const {
  if (!options_.credentials) return {check_token(head), {}};
  const auto find = [this](std::string_view id) {
    return id == options_.credentials->access_key_id
               ? options_.credentials
               : std::optional<AwsCredentials>();
  };
  CheckedSignature checked = verify_signature(
      {.method = head.method, .target = head.target, .headers = head.headers},
      find, now);
  // Who does not say who they are is not asked for a token.
  if (checked.verdict == SignatureVerdict::kAnonymous) {
    return {s3_error(S3Code::kAccessDenied), {}};
  }
  if (auto refusal = check_token(head)) return {std::move(refusal), {}};
  if (checked.verdict == SignatureVerdict::kValid) {
    return {std::nullopt, std::move(checked.payload_hash)};
  }
  return {S3Error{s3_error_code(checked.verdict),
                  s3_error_status(checked.verdict), std::move(checked.reason)},
          {}};
}

}  // namespace leat
