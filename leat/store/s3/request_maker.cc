#include "leat/store/s3/request_maker.h"

#include <algorithm>
#include <array>
#include <utility>

#include "leat/base/buffer.h"

namespace leat {
namespace {

// Less is within what S3 lets pass, and noise of the network.
constexpr std::chrono::seconds kNoise{60};

std::string header_line(std::string_view name, std::string_view value) {
  std::string line;
  line.reserve(name.size() + value.size() + 2);
  line.append(name).append(": ").append(value);
  return line;
}

std::optional<Signer> signer_of(const S3Settings& settings) {
  if (!settings.credentials) return std::nullopt;
  return std::optional<Signer>(std::in_place, *settings.credentials,
                               settings.region);
}

std::optional<int> number(std::string_view text) {
  int value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

}  // namespace

WallTime system_now() {
  return std::chrono::floor<std::chrono::seconds>(
      std::chrono::system_clock::now());
}

RequestMaker::RequestMaker(S3Settings settings, WallNow now)
    : settings_(std::move(settings)),
      now_(std::move(now)),
      signer_(signer_of(settings_)) {}

HttpRequest RequestMaker::make(Wanted wanted) const {
  std::string path = settings_.base_path;
  if (!wanted.key.empty() || path.empty()) path += '/';
  append_uri_encoded(path, wanted.key, Slash::kKeep);
  const std::string query = canonical_query(wanted.query);

  HttpRequest request;
  request.method = wanted.method;
  request.url.reserve(settings_.base_url.size() + path.size() + query.size() +
                      2);
  request.url = settings_.base_url;
  request.url.append(path, settings_.base_path.size());
  if (!query.empty()) request.url.append("?").append(query);
  request.body = wanted.body;
  request.headers.reserve(wanted.headers.size() + 4);
  sign(wanted, path, query, request);
  for (std::string& header : wanted.headers) {
    request.headers.push_back(std::move(header));
  }
  return request;
}

void RequestMaker::sign(const Wanted& wanted, std::string_view path,
                        std::string_view query, HttpRequest& request) const {
  if (!signer_) return;
  const AmzDate date(now_() + std::chrono::seconds(clock_offset_.load(
                                  std::memory_order_relaxed)));
  std::string payload_hash;
  if (!wanted.body.empty()) {
    payload_hash = sha256_hex(as_text(wanted.body));
  } else {
    payload_hash = settings_.is_tls() ? kUnsignedPayload : kEmptyPayload;
  }
  const std::string& token = signer_->credentials().session_token;
  const std::array<SigningRequest::Header, 4> headers = {{
      {"host", settings_.host},
      {"x-amz-content-sha256", payload_hash},
      {"x-amz-date", date.text()},
      {"x-amz-security-token", token},
  }};
  const SigningRequest signing{
      .method = wanted.method,
      .path = path,
      .query = query,
      .headers = std::span(headers).first(token.empty() ? 3 : 4),
      .payload_hash = payload_hash};
  for (const auto& header : signing.headers.subspan(1)) {
    request.headers.push_back(header_line(header.name, header.value));
  }
  request.headers.push_back(
      header_line("Authorization", signer_->authorization(signing, date)));
}

bool RequestMaker::adopt_server_time(WallTime server) {
  const auto offset = (server - now_()).count();
  const auto before = clock_offset_.exchange(offset, std::memory_order_relaxed);
  return std::max(before, offset) - std::min(before, offset) > kNoise.count();
}

std::optional<WallTime> parse_http_date(std::string_view text) {
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  if (text.size() != 29 || !text.ends_with(" GMT") || text[19] != ':' ||
      text[22] != ':') {
    return std::nullopt;
  }
  const auto day = number(text.substr(5, 2));
  const std::size_t month = kMonths.find(text.substr(8, 3));
  const auto year = number(text.substr(12, 4));
  const auto hour = number(text.substr(17, 2));
  const auto minute = number(text.substr(20, 2));
  const auto second = number(text.substr(23, 2));
  if (!day || month == std::string_view::npos || month % 3 != 0 || !year ||
      !hour || !minute || !second) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date(
      std::chrono::year(*year),
      std::chrono::month(static_cast<unsigned>(month / 3 + 1)),
      std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 60) {
    return std::nullopt;
  }
  return std::chrono::sys_days(date) + std::chrono::hours(*hour) +
         std::chrono::minutes(*minute) + std::chrono::seconds(*second);
}

}  // namespace leat
