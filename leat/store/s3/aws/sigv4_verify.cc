// A server recomputes the signature from the request that it received: the path
// decoded and encoded again (clients escape differently), the query sorted, the
// signed headers by name. Then it compares.

#include "leat/store/s3/aws/sigv4_verify.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <cctype>

#include "leat/base/check.h"
#include "leat/base/text.h"

namespace leat {
namespace {

constexpr std::size_t kMostSignedHeaders = 128;
constexpr std::uint32_t kMostExpirySeconds = 7 * 24 * 3600;

/// The client's claims, from the header or the query.
struct Claim {
  std::string access_key_id;
  std::string day;
  std::string region;
  std::string service;
  std::vector<std::string> signed_headers;
  std::string signature;
  std::optional<AmzDate> date;
  std::optional<std::chrono::seconds> expires;  // Presigned only.
  std::string payload_hash;
  std::string session_token;
};

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return std::tolower(static_cast<unsigned char>(x)) ==
                  std::tolower(static_cast<unsigned char>(y));
         });
}

std::string_view without_spaces(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// All values of a header, joined by commas as SigV4 has it.
std::optional<std::string> find_header(const ReceivedRequest& request,
                                       std::string_view name) {
  std::optional<std::string> found;
  for (const auto& [header, value] : request.headers) {
    if (!equal_ignoring_case(header, name)) continue;
    if (found) {
      found->append(",").append(without_spaces(value));
    } else {
      found = std::string(without_spaces(value));
    }
  }
  return found;
}

const std::string* find_pair(const QueryPairs& query, std::string_view name) {
  for (const auto& [key, value] : query) {
    if (key == name) return &value;
  }
  return nullptr;
}

/// `id/day/region/service/aws4_request`; ids themselves may hold slashes.
bool read_credential(std::string_view text, Claim& claim) {
  const std::vector<std::string_view> parts = split(text, '/');
  if (parts.size() < 5 || parts.back() != "aws4_request") return false;
  const std::size_t n = parts.size();
  claim.service = parts[n - 2];
  claim.region = parts[n - 3];
  claim.day = parts[n - 4];
  const std::size_t tail = parts[n - 1].size() + parts[n - 2].size() +
                           parts[n - 3].size() + parts[n - 4].size() + 4;
  claim.access_key_id = text.substr(0, text.size() - tail);
  return claim.day.size() == 8 && !claim.access_key_id.empty();
}

bool read_signed_headers(std::string_view text, Claim& claim) {
  for (const std::string_view name : split(text, ';')) {
    if (name.empty() || claim.signed_headers.size() == kMostSignedHeaders) {
      return false;
    }
    claim.signed_headers.push_back(lowered(name));
  }
  std::vector<std::string>& names = claim.signed_headers;
  return std::is_sorted(names.begin(), names.end()) &&
         std::adjacent_find(names.begin(), names.end()) == names.end() &&
         std::binary_search(names.begin(), names.end(), "host");
}

/// Returns what is wrong, or nothing.
std::string_view read_authorization(std::string_view text,
                                    const ReceivedRequest& request,
                                    Claim& claim) {
  text.remove_prefix(kSigv4Algorithm.size());
  bool has_credential = false, has_headers = false;
  for (const std::string_view part : split(text, ',')) {
    const std::string_view field = without_spaces(part);
    const std::size_t equals = field.find('=');
    if (equals == std::string_view::npos) return "a part without '='";
    const std::string_view name = field.substr(0, equals);
    const std::string_view value = field.substr(equals + 1);
    if (name == "Credential") has_credential = read_credential(value, claim);
    if (name == "SignedHeaders") {
      has_headers = read_signed_headers(value, claim);
    }
    if (name == "Signature") claim.signature = value;
  }
  if (!has_credential) return "Credential is missing or not ID/DATE/REGION/s3";
  if (!has_headers) return "SignedHeaders is missing, unsorted or lacks host";
  if (claim.signature.size() != 64) return "Signature is not 64 digits";
  claim.date = AmzDate::parse(find_header(request, "x-amz-date").value_or(""));
  if (!claim.date) return "x-amz-date is missing or not YYYYMMDDTHHMMSSZ";
  const auto hash = find_header(request, "x-amz-content-sha256");
  if (!hash) return "x-amz-content-sha256 is missing";
  claim.payload_hash = *hash;
  claim.session_token =
      find_header(request, "x-amz-security-token").value_or("");
  return {};
}

std::string_view read_presigned(const QueryPairs& query,
                                const ReceivedRequest& request, Claim& claim) {
  const auto value_of = [&](std::string_view name) -> std::string_view {
    const std::string* value = find_pair(query, name);
    return value ? std::string_view(*value) : std::string_view();
  };
  if (value_of("X-Amz-Algorithm") != kSigv4Algorithm)
    return "unknown algorithm";
  if (!read_credential(value_of("X-Amz-Credential"), claim)) {
    return "X-Amz-Credential is missing or not ID/DATE/REGION/s3";
  }
  if (!read_signed_headers(value_of("X-Amz-SignedHeaders"), claim)) {
    return "X-Amz-SignedHeaders is missing, unsorted or lacks host";
  }
  claim.signature = value_of("X-Amz-Signature");
  if (claim.signature.size() != 64) return "X-Amz-Signature is not 64 digits";
  claim.date = AmzDate::parse(value_of("X-Amz-Date"));
  if (!claim.date) return "X-Amz-Date is missing or not YYYYMMDDTHHMMSSZ";
  const auto seconds = number_from<std::uint32_t>(value_of("X-Amz-Expires"));
  if (!seconds || *seconds == 0 || *seconds > kMostExpirySeconds) {
    return "X-Amz-Expires is missing or not within 1 and 604800";
  }
  claim.expires = std::chrono::seconds(*seconds);
  claim.payload_hash = find_header(request, "x-amz-content-sha256")
                           .value_or(std::string(kUnsignedPayload));
  claim.session_token = value_of("X-Amz-Security-Token");
  return {};
}

/// The signature that the holder of `credentials` would have made.
/// Nullopt if a header that should be signed did not come.
std::optional<std::string> recompute(const ReceivedRequest& request,
                                     QueryPairs query, const Claim& claim,
                                     const Credentials& credentials) {
  std::vector<std::string> values;
  values.reserve(claim.signed_headers.size());
  for (const std::string& name : claim.signed_headers) {
    auto value = find_header(request, name);
    if (!value) return std::nullopt;
    values.push_back(*std::move(value));
  }
  std::vector<SigningRequest::Header> headers;
  for (std::size_t i = 0; i < values.size(); ++i) {
    headers.push_back({claim.signed_headers[i], values[i]});
  }
  std::erase_if(
      query, [](const auto& pair) { return pair.first == "X-Amz-Signature"; });
  const std::string_view raw_path =
      request.target.substr(0, request.target.find('?'));
  const std::string path = uri_encode(uri_decode(raw_path), Slash::kKeep);
  const std::string sorted_query = canonical_query(query);
  const SigningRequest signing{.method = request.method,
                               .path = path,
                               .query = sorted_query,
                               .headers = headers,
                               .payload_hash = claim.payload_hash};
  return Signer(credentials, claim.region, claim.service)
      .signature(signing, *claim.date);
}

/// The verdict on the times of a claim; kValid if they are fine.
SignatureVerdict judge_time(const Claim& claim, WallTime now,
                            std::chrono::seconds most_skew) {
  const auto age = now - claim.date->time();
  if (claim.expires) {
    if (age < -most_skew) return SignatureVerdict::kSkewed;
    return age > *claim.expires ? SignatureVerdict::kExpired
                                : SignatureVerdict::kValid;
  }
  return age > most_skew || age < -most_skew ? SignatureVerdict::kSkewed
                                             : SignatureVerdict::kValid;
}

std::string_view reason_of(SignatureVerdict verdict) {
  switch (verdict) {
    case SignatureVerdict::kValid:
    case SignatureVerdict::kAnonymous:
    case SignatureVerdict::kMalformed:
      return "";
    case SignatureVerdict::kUnknownKey:
      return "The access key id does not exist in our records.";
    case SignatureVerdict::kMismatch:
      return "The signature we calculated does not match the one you provided. "
             "Check your secret access key and signing method.";
    case SignatureVerdict::kExpired:
      return "Request has expired.";
    case SignatureVerdict::kSkewed:
      return "The difference between the request time and the current time is "
             "too large.";
    case SignatureVerdict::kWrongRegion:
      return "The authorization header is malformed; the region is wrong.";
  }
  return "";
}

CheckedSignature answer(SignatureVerdict verdict, Claim claim,
                        std::string_view reason = {}) {
  return {verdict, std::move(claim.access_key_id), std::move(claim.region),
          std::move(claim.payload_hash),
          std::string(reason.empty() ? reason_of(verdict) : reason)};
}

}  // namespace

std::string_view s3_error_code(SignatureVerdict verdict) {
  switch (verdict) {
    case SignatureVerdict::kValid:
    case SignatureVerdict::kAnonymous:
      break;
    case SignatureVerdict::kMalformed:
    case SignatureVerdict::kWrongRegion:
      return "AuthorizationHeaderMalformed";
    case SignatureVerdict::kUnknownKey:
      return "InvalidAccessKeyId";
    case SignatureVerdict::kMismatch:
      return "SignatureDoesNotMatch";
    case SignatureVerdict::kExpired:
      return "AccessDenied";
    case SignatureVerdict::kSkewed:
      return "RequestTimeTooSkewed";
  }
  LEAT_CHECK(false);
  return {};
}

int s3_error_status(SignatureVerdict verdict) {
  return s3_error_code(verdict) == "AuthorizationHeaderMalformed" ? 400 : 403;
}

CheckedSignature verify_signature(const ReceivedRequest& request,
                                  const FindCredentials& find_credentials,
                                  WallTime now, const VerifyOptions& options) {
  Claim claim;
  const std::size_t mark = request.target.find('?');
  const QueryPairs query = parse_query(
      mark == std::string_view::npos ? "" : request.target.substr(mark + 1));
  const std::optional<std::string> header =
      find_header(request, "authorization");
  std::string_view wrong;
  if (header) {
    wrong = header->starts_with(std::string(kSigv4Algorithm) + " ")
                ? read_authorization(*header, request, claim)
                : "only AWS4-HMAC-SHA256 is spoken here";
  } else if (find_pair(query, "X-Amz-Algorithm")) {
    wrong = read_presigned(query, request, claim);
  } else if (find_pair(query, "AWSAccessKeyId")) {
    wrong = "signature version 2 is not spoken here; use version 4";
  } else {
    return {};
  }
  if (wrong.empty() && claim.day != claim.date->day()) {
    wrong = "the day in the credential is not the day of the request";
  }
  if (!wrong.empty()) {
    return answer(SignatureVerdict::kMalformed, std::move(claim), wrong);
  }

  const auto credentials = find_credentials(claim.access_key_id);
  if (!credentials) {
    return answer(SignatureVerdict::kUnknownKey, std::move(claim));
  }
  if (!options.region.empty() && claim.region != options.region) {
    return answer(SignatureVerdict::kWrongRegion, std::move(claim));
  }
  const auto expected = recompute(request, query, claim, *credentials);
  if (!expected || !equal_in_constant_time(*expected, claim.signature) ||
      !equal_in_constant_time(credentials->session_token,
                              claim.session_token)) {
    return answer(SignatureVerdict::kMismatch, std::move(claim));
  }
  const SignatureVerdict verdict = judge_time(claim, now, options.most_skew);
  return answer(verdict, std::move(claim));
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

QueryPairs parse_query(std::string_view query) {
  QueryPairs pairs;
  for (const std::string_view part : split(query, '&')) {
    if (part.empty()) continue;
    const std::size_t equals = part.find('=');
    pairs.emplace_back(uri_decode(part.substr(0, equals)),
                       equals == std::string_view::npos
                           ? std::string()
                           : uri_decode(part.substr(equals + 1)));
  }
  return pairs;
}

}  // namespace leat
