#include "leat/store/s3/request_maker.h"

#include <array>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/store/s3/aws/endpoint.h"

namespace leat {
namespace {

// Less is within what S3 lets pass, and noise of the network.
constexpr std::chrono::seconds kNoise{60};

constexpr std::string_view kChecksumHeader = "x-amz-checksum-mode";
constexpr std::string_view kChecksumValue = "ENABLED";

/// Google sends checksums of its own, unasked.
bool wants_checksum(const RequestMaker::Wanted& wanted,
                    const S3Settings& settings) {
  return wanted.wants_checksum && settings.scheme == "s3";
}

std::string header_line(std::string_view name, std::string_view value) {
  std::string line;
  line.reserve(name.size() + value.size() + 2);
  line.append(name).append(": ").append(value);
  return line;
}

}  // namespace

RequestMaker::RequestMaker(S3Settings settings, WallNow now)
    : now_(std::move(now)),
      settings_(std::make_shared<const S3Settings>(std::move(settings))) {}

RequestMaker::SettingsRef RequestMaker::settings() const {
  const MutexLock lock(mutex_);
  return settings_;
}

RequestMaker::SignerRef RequestMaker::signer_of(const MadeWith& with) const {
  const MutexLock lock(mutex_);
  if (!signer_ || signer_from_.who != with.who ||
      signer_from_.settings != with.settings) {
    signer_from_ = with;
    signer_ = std::make_shared<const Signer>(*with.who, with.settings->region);
  }
  return signer_;
}

RequestMaker::Made RequestMaker::make(Wanted wanted, CredentialsRef who) const {
  Made made{.http = {},
            .with = {.who = std::move(who),
                     .settings = settings(),
                     .clock_offset = std::chrono::seconds(
                         clock_offset_.load(std::memory_order_relaxed))}};
  const S3Settings& settings = *made.with.settings;
  std::string path = settings.base_path;
  if (!wanted.key.empty() || path.empty()) path += '/';
  append_uri_encoded(path, wanted.key, Slash::kKeep);
  const std::string query = canonical_query(wanted.query);

  HttpRequest& request = made.http;
  request.method = wanted.method;
  request.url.reserve(settings.base_url.size() + path.size() + query.size() +
                      2);
  request.url = settings.base_url;
  request.url.append(path, settings.base_path.size());
  if (!query.empty()) request.url.append("?").append(query);
  request.body = wanted.body;
  request.headers.reserve(wanted.headers.size() + 7);
  if (made.with.who) {
    sign(wanted, path, query, made);
  } else if (wants_checksum(wanted, settings)) {
    request.headers.push_back(header_line(kChecksumHeader, kChecksumValue));
  }
  for (std::string& header : wanted.headers) {
    request.headers.push_back(std::move(header));
  }
  return made;
}

void RequestMaker::sign(const Wanted& wanted, std::string_view path,
                        std::string_view query, Made& made) const {
  const S3Settings& settings = *made.with.settings;
  const SignerRef signer = signer_of(made.with);
  const AmzDate date(now_() + made.with.clock_offset);
  std::string payload_hash;
  if (!wanted.body.empty()) {
    payload_hash = sha256_hex(as_text(wanted.body));
  } else {
    payload_hash = settings.is_tls() ? kUnsignedPayload : kEmptyPayload;
  }
  std::array<SigningRequest::Header, 7> headers;  // Sorted, as they are signed.
  std::size_t count = 0;
  headers[count++] = {"host", settings.host};
  if (wants_checksum(wanted, settings)) {
    headers[count++] = {kChecksumHeader, kChecksumValue};
  }
  headers[count++] = {"x-amz-content-sha256", payload_hash};
  headers[count++] = {"x-amz-date", date.text()};
  if (settings.requester_pays) {
    headers[count++] = {"x-amz-request-payer", "requester"};
  }
  if (!made.with.who->session_token.empty()) {
    headers[count++] = {"x-amz-security-token", made.with.who->session_token};
  }
  if (!settings.user_project.empty()) {
    headers[count++] = {"x-goog-user-project", settings.user_project};
  }
  const SigningRequest signing{.method = wanted.method,
                               .path = path,
                               .query = query,
                               .headers = std::span(headers).first(count),
                               .payload_hash = payload_hash};
  for (const auto& header : signing.headers.subspan(1)) {
    made.http.headers.push_back(header_line(header.name, header.value));
  }
  made.http.headers.push_back(
      header_line("Authorization", signer->authorization(signing, date)));
}

bool RequestMaker::adopt_server_time(const MadeWith& with, WallTime server) {
  const std::chrono::seconds offset = server - now_();
  clock_offset_.store(offset.count(), std::memory_order_relaxed);
  return std::chrono::abs(offset - with.clock_offset) > kNoise;
}

bool RequestMaker::adopt_region(const MadeWith& with, std::string_view region) {
  if (!is_region(region) || region == with.settings->region) return false;
  const MutexLock lock(mutex_);
  // Many are under way when the first reply tells: the others just go again.
  if (with.settings != settings_) return true;
  if (has_moved_) return false;
  has_moved_ = true;
  settings_ =
      std::make_shared<const S3Settings>(moved_to_region(*settings_, region));
  return true;
}

}  // namespace leat
