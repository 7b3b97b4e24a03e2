// The four steps of Signature Version 4: canonical request, string to sign,
// signing key, signature.

#include "leat/store/s3/aws/sigv4.h"

#include <algorithm>
#include <chrono>

#include "leat/base/check.h"

namespace leat {
namespace {

void put_number(char* at, unsigned value, int digits) {
  for (int i = digits - 1; i >= 0; --i, value /= 10) {
    at[i] = static_cast<char>('0' + value % 10);
  }
}

std::optional<int> take_number(std::string_view text) {
  int value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

/// Appends a header's value without the blanks around it, and with one space
/// for each run of blanks within it.
void append_trimmed(std::string& out, std::string_view value) {
  const std::size_t begin = out.size();
  bool owes_blank = false;
  for (const char c : value) {
    if (c == ' ' || c == '\t') {
      owes_blank = out.size() > begin;
      continue;
    }
    if (owes_blank) out += ' ';
    owes_blank = false;
    out += c;
  }
}

void append_header_names(std::string& out, const SigningRequest& request) {
  bool is_first = true;
  for (const auto& header : request.headers) {
    if (!is_first) out += ';';
    is_first = false;
    out += header.name;
  }
}

}  // namespace

AmzDate::AmzDate(WallTime time) : time_(time), text_{} {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  const int year = static_cast<int>(date.year());
  LEAT_CHECK(year >= 0 && year <= 9999);
  char* const at = text_.data();
  put_number(at, static_cast<unsigned>(year), 4);
  put_number(at + 4, static_cast<unsigned>(date.month()), 2);
  put_number(at + 6, static_cast<unsigned>(date.day()), 2);
  at[8] = 'T';
  put_number(at + 9, static_cast<unsigned>(clock.hours().count()), 2);
  put_number(at + 11, static_cast<unsigned>(clock.minutes().count()), 2);
  put_number(at + 13, static_cast<unsigned>(clock.seconds().count()), 2);
  at[15] = 'Z';
}

std::optional<AmzDate> AmzDate::parse(std::string_view text) {
  if (text.size() != 16 || text[8] != 'T' || text[15] != 'Z') {
    return std::nullopt;
  }
  const auto date = take_number(text.substr(0, 8));
  const auto clock = take_number(text.substr(9, 6));
  if (!date || !clock) return std::nullopt;
  const std::chrono::year_month_day day(
      std::chrono::year(*date / 10000),
      std::chrono::month(static_cast<unsigned>(*date / 100 % 100)),
      std::chrono::day(static_cast<unsigned>(*date % 100)));
  const int hour = *clock / 10000;
  const int minute = *clock / 100 % 100;
  const int second = *clock % 100;
  if (!day.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  return AmzDate(std::chrono::sys_days(day) + std::chrono::hours(hour) +
                 std::chrono::minutes(minute) + std::chrono::seconds(second));
}

std::string canonical_request(const SigningRequest& request) {
  std::string out;
  out.reserve(512);
  out.append(request.method).append("\n");
  out.append(request.path).append("\n");
  out.append(request.query).append("\n");
  for (const auto& header : request.headers) {
    out.append(header.name).append(":");
    append_trimmed(out, header.value);
    out += '\n';
  }
  out += '\n';
  append_header_names(out, request);
  out.append("\n").append(request.payload_hash);
  return out;
}

std::string signed_header_names(const SigningRequest& request) {
  std::string out;
  append_header_names(out, request);
  return out;
}

std::string credential_scope(std::string_view day, std::string_view region,
                             std::string_view service) {
  std::string out;
  out.reserve(64);
  out.append(day).append("/").append(region).append("/");
  out.append(service).append("/aws4_request");
  return out;
}

std::string string_to_sign(const AmzDate& date, std::string_view scope,
                           std::string_view canonical_request) {
  std::string out;
  out.reserve(192);
  out.append(kSigv4Algorithm).append("\n");
  out.append(date.text()).append("\n");
  out.append(scope).append("\n");
  append_hex(out, sha256(canonical_request));
  return out;
}

Sha256 signing_key(std::string_view secret_access_key, std::string_view day,
                   std::string_view region, std::string_view service) {
  const std::string secret = std::string("AWS4").append(secret_access_key);
  const Sha256 of_day = hmac_sha256(secret, day);
  const Sha256 of_region = hmac_sha256(as_view(of_day), region);
  const Sha256 of_service = hmac_sha256(as_view(of_region), service);
  return hmac_sha256(as_view(of_service), "aws4_request");
}

Signer::Signer(Credentials credentials, std::string region, std::string service)
    : credentials_(std::move(credentials)),
      region_(std::move(region)),
      service_(std::move(service)) {}

std::string Signer::signature(const SigningRequest& request,
                              const AmzDate& date) const {
  const Sha256 key = key_of(date.day());
  return hex(hmac_sha256(
      as_view(key),
      string_to_sign(date, credential_scope(date.day(), region_, service_),
                     canonical_request(request))));
}

std::string Signer::authorization(const SigningRequest& request,
                                  const AmzDate& date) const {
  std::string out;
  out.reserve(320);
  out.append(kSigv4Algorithm).append(" Credential=");
  out.append(credentials_.access_key_id).append("/");
  out.append(credential_scope(date.day(), region_, service_));
  out.append(",SignedHeaders=");
  append_header_names(out, request);
  out.append(",Signature=").append(signature(request, date));
  return out;
}

Sha256 Signer::key_of(std::string_view day) const {
  const MutexLock lock(mutex_);
  if (day_ != day) {
    key_ = signing_key(credentials_.secret_access_key, day, region_, service_);
    day_ = day;
  }
  return key_;
}

}  // namespace leat
