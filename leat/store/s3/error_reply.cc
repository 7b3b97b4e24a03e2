#include "leat/store/s3/error_reply.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <pugixml.hpp>

#include "leat/store/http/shown_text.h"
#include "leat/store/http/status.h"

namespace leat {
namespace {

struct Meaning {
  std::string_view code;  ///< S3's; a '*' at its end stands for anything.
  ErrorCode error;
  std::string_view remedy;
};

constexpr std::string_view kSlower =
    "the service asks for fewer requests; lower max_in_flight";
constexpr std::string_view kFailed = "the service failed and may recover";
constexpr std::string_view kRenew =
    "the temporary credentials are no longer good; get new ones and set "
    "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or the "
    "profile";
constexpr std::string_view kRedirected = "";  // Said by where_it_is().

constexpr std::array kMeanings = {
    Meaning{"NoSuchKey", ErrorCode::kNotFound,
            "there is no object of this key; check the spelling and, if the "
            "catalogue is old, index again"},
    Meaning{"NoSuchBucket", ErrorCode::kNotFound,
            "there is no bucket of this name here; check the name, the region "
            "and --endpoint-url"},
    Meaning{"AccessDenied", ErrorCode::kPermissionDenied,
            "these credentials may not do this; grant s3:GetObject and "
            "s3:ListBucket on the bucket (s3:PutObject to write), or use "
            "others"},
    Meaning{"SignatureDoesNotMatch", ErrorCode::kPermissionDenied,
            "the secret key does not belong to the access key; check "
            "AWS_SECRET_ACCESS_KEY or the profile, and that no proxy changes "
            "the request"},
    Meaning{"InvalidAccessKeyId", ErrorCode::kPermissionDenied,
            "nobody here has this access key; check AWS_ACCESS_KEY_ID or the "
            "profile, AWS_SESSION_TOKEN if the key is temporary, and "
            "--endpoint-url"},
    Meaning{"ExpiredToken", ErrorCode::kPermissionDenied, kRenew},
    Meaning{"ExpiredTokenException", ErrorCode::kPermissionDenied, kRenew},
    Meaning{"InvalidToken", ErrorCode::kPermissionDenied, kRenew},
    Meaning{"TokenRefreshRequired", ErrorCode::kPermissionDenied, kRenew},
    Meaning{"RequestTimeTooSkewed", ErrorCode::kPermissionDenied,
            "this machine's clock and the server's are more than 15 minutes "
            "apart; set the clock"},
    Meaning{"SlowDown", ErrorCode::kThrottled, kSlower},
    Meaning{"ServiceUnavailable", ErrorCode::kThrottled, kSlower},
    Meaning{"TooManyRequests*", ErrorCode::kThrottled, kSlower},
    Meaning{"Throttl*", ErrorCode::kThrottled, kSlower},
    Meaning{"RequestThrottl*", ErrorCode::kThrottled, kSlower},
    Meaning{"RequestLimitExceeded", ErrorCode::kThrottled, kSlower},
    Meaning{"BandwidthLimitExceeded", ErrorCode::kThrottled, kSlower},
    Meaning{"InternalError*", ErrorCode::kUnavailable, kFailed},
    Meaning{"InternalFailure", ErrorCode::kUnavailable, kFailed},
    Meaning{"RequestTimeout*", ErrorCode::kUnavailable, kFailed},
    Meaning{"OperationAborted", ErrorCode::kUnavailable, kFailed},
    Meaning{"PreconditionFailed", ErrorCode::kCorrupt,
            "the object changed since it was indexed; index again"},
    Meaning{"InvalidRange", ErrorCode::kInvalidArgument,
            "the range runs past the end; if the object shrank, index again"},
    Meaning{"InvalidObjectState", ErrorCode::kInvalidArgument,
            "the object is archived; restore it first"},
    Meaning{"PermanentRedirect", ErrorCode::kInvalidArgument, kRedirected},
    Meaning{"TemporaryRedirect", ErrorCode::kInvalidArgument, kRedirected},
    Meaning{"Redirect", ErrorCode::kInvalidArgument, kRedirected},
    Meaning{"AuthorizationHeaderMalformed", ErrorCode::kInvalidArgument,
            kRedirected},
    Meaning{"IllegalLocationConstraintException", ErrorCode::kInvalidArgument,
            kRedirected},
};

const Meaning* meaning_of(std::string_view code) {
  const auto found =
      std::find_if(kMeanings.begin(), kMeanings.end(), [&](const Meaning& m) {
        return m.code.ends_with('*')
                   ? code.starts_with(m.code.substr(0, m.code.size() - 1))
                   : code == m.code;
      });
  return found == kMeanings.end() ? nullptr : &*found;
}

bool is_redirect(int status) { return status >= 300 && status < 400; }

/// The S3 code that stands for a status whose reply names none: that of a HEAD,
/// or of something that is not S3.
std::string_view usual_code(int status) {
  switch (status) {
    case 401:
    case 403:
      return "AccessDenied";
    case 404:
    case 410:
      return "NoSuchKey";
    case 412:
      return "PreconditionFailed";
    case 416:
      return "InvalidRange";
    case 429:
    case 503:
    case 509:
      return "SlowDown";
    default:
      if (is_redirect(status)) return "Redirect";
      return status == 408 || status >= 500 || is_success(status)
                 ? "InternalError"
                 : "";
  }
}

/// The remedy for a bucket that lives elsewhere.
std::string where_it_is(std::string_view region, const S3Attempt& attempt) {
  if (region.empty() || region == attempt.region) {
    return fmt::format(
        "{} does not serve bucket '{}' for region {}; set AWS_REGION "
        "(--region) to the bucket's region, or check --endpoint-url",
        attempt.host, attempt.bucket, attempt.region);
  }
  return fmt::format(
      "bucket '{}' is in region {}, not in {}; set AWS_REGION={} (--region {})",
      attempt.bucket, region, attempt.region, region, region);
}

std::string remedy(const HttpReply& reply, const S3ErrorReply& said,
                   const Meaning* meaning, const S3Attempt& attempt) {
  if (!meaning) return "the server does not accept the request";
  if (meaning->remedy == kRedirected) return where_it_is(said.region, attempt);
  if (!attempt.is_signed && (reply.status == 401 || reply.status == 403)) {
    return "the bucket is not public, and the request was not signed; give "
           "credentials and leave no_sign_request (--no-sign-request) out";
  }
  if (!attempt.keys_remedy.empty() &&
      meaning->error == ErrorCode::kPermissionDenied &&
      meaning->code != "RequestTimeTooSkewed") {
    return std::string(attempt.keys_remedy);
  }
  return std::string(meaning->remedy);
}

}  // namespace

std::optional<S3ErrorReply> parse_s3_error(
    std::string_view body, std::span<const std::string> secrets) {
  if (body.size() > kMostS3ErrorBytes) return std::nullopt;
  pugi::xml_document document;
  if (!document.load_buffer(body.data(), body.size(), pugi::parse_default,
                            pugi::encoding_utf8)) {
    return std::nullopt;
  }
  const pugi::xml_node root = document.child("Error");
  if (!root) return std::nullopt;
  const auto said = [&](const char* name) {
    return shown_text(root.child_value(name), secrets);
  };
  return S3ErrorReply{.code = said("Code"),
                      .message = said("Message"),
                      .request_id = said("RequestId"),
                      .region = said("Region")};
}

S3Errand errand_of(const HttpReply& reply) {
  if (is_success(reply.status)) return {};
  const S3ErrorReply said = parse_s3_error(reply.body).value_or(S3ErrorReply{});
  if (said.code == "RequestTimeTooSkewed") return {S3Cure::kClock, {}};
  if (said.code == "ExpiredToken" || said.code == "ExpiredTokenException" ||
      said.code == "InvalidToken" || said.code == "TokenRefreshRequired") {
    return {S3Cure::kCredentials, {}};
  }
  std::string region = said.region;
  if (region.empty()) region = reply.header("x-amz-bucket-region");
  const Meaning* meaning = meaning_of(said.code);
  const bool is_elsewhere =
      is_redirect(reply.status) ||
      (meaning ? meaning->remedy == kRedirected
               : said.code.empty() && reply.status == 400);
  if (!is_elsewhere || region.empty()) return {};
  return {S3Cure::kRegion, std::move(region)};
}

Error error_from_s3(const HttpReply& reply, const S3Attempt& attempt) {
  S3ErrorReply said =
      parse_s3_error(reply.body, reply.sent_values).value_or(S3ErrorReply{});
  if (said.region.empty()) {
    said.region =
        shown_text(reply.header("x-amz-bucket-region"), reply.sent_values);
  }
  if (said.request_id.empty()) {
    said.request_id =
        shown_text(reply.header("x-amz-request-id"), reply.sent_values);
  }
  const Meaning* meaning = meaning_of(said.code);
  if (!meaning) meaning = meaning_of(usual_code(reply.status));

  std::string message = fmt::format("{}: HTTP {}", attempt.doing, reply.status);
  if (!said.code.empty()) message.append(" ").append(said.code);
  if (!said.message.empty()) message.append(": ").append(said.message);
  message += fmt::format(" ({})", remedy(reply, said, meaning, attempt));
  if (!said.request_id.empty()) {
    message += fmt::format(" [request id {}]", said.request_id);
  }
  return Error(meaning ? meaning->error : error_code_of(reply.status),
               std::move(message));
}

}  // namespace leat
