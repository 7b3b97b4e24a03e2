#include "leat/store/http/curl_transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "leat/base/check.h"

namespace leat {
namespace {

/// libcurl allocates its buffer anew for every transfer. Each free of 64 KiB or
/// more has glibc tidy and trim its heap, and the next allocation meets fresh
/// pages; so it is smaller, and for a small object smaller still.
constexpr std::size_t kMostBufferBytes = 48 * 1024;
constexpr std::size_t kLeastBufferBytes = 8 * 1024;
constexpr std::size_t kHeadBytes = 2 * 1024;

/// S3 closes connections that are idle for about 5 s; one that is about to be
/// closed is not worth trying.
constexpr long kMostIdleSeconds = 4;

ErrorCode code_for(CURLcode code) {
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return ErrorCode::kDeadlineExceeded;
    case CURLE_PEER_FAILED_VERIFICATION:
      return ErrorCode::kPermissionDenied;
    case CURLE_URL_MALFORMAT:
    case CURLE_SSL_CACERT_BADFILE:
      return ErrorCode::kInvalidArgument;
    default:
      // Resets, refusals, handshakes, broken replies: all may pass.
      return ErrorCode::kUnavailable;
  }
}

std::string_view remedy(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_CONNECT:
      return "check that the server runs and that host and port are right";
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
      return "check the host's spelling and this machine's DNS";
    case CURLE_OPERATION_TIMEDOUT:
      return "check the network";
    case CURLE_PEER_FAILED_VERIFICATION:
      return "if the certificate is your own, name its PEM file in "
             "SSL_CERT_FILE (for s3:// also in AWS_CA_BUNDLE)";
    case CURLE_SSL_CACERT_BADFILE:
      return "check the PEM file that SSL_CERT_FILE (for s3:// also "
             "AWS_CA_BUNDLE) names";
    case CURLE_SSL_CONNECT_ERROR:
      return "the TLS handshake failed; if the port speaks plain http, write "
             "http:// in the place of https://";
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
      return "what came is no HTTP reply; check that host and port are right, "
             "and write https:// in the place of http:// if the port speaks "
             "TLS";
    case CURLE_OUT_OF_MEMORY:
      return "a line of the reply has no end, or memory is short";
    case CURLE_GOT_NOTHING:
      return "the server closed the connection without an answer; if the port "
             "speaks TLS, write https:// in the place of http://";
    default:
      return "the connection broke";
  }
}

/// The number in "HTTP/1.1 206 Partial Content"; libcurl has checked it.
int status_in(std::string_view line) {
  const std::size_t space = line.find(' ');
  int status = 0;
  for (std::size_t i = space; i < line.size() && i < space + 4; ++i) {
    if (line[i] >= '0' && line[i] <= '9') status = status * 10 + line[i] - '0';
  }
  return status;
}

}  // namespace

CurlTransfer::CurlTransfer(Transfer& transfer, const TransferSettings& settings,
                           SocketOwner& sockets)
    : transfer_(transfer),
      sockets_(sockets),
      look_every_(settings.options.progress_window / 4),
      easy_(curl_easy_init()) {
  LEAT_CHECK(easy_ != nullptr);
  set_constant_options(settings);
}

CurlTransfer::~CurlTransfer() { curl_easy_cleanup(easy_); }

void CurlTransfer::set_constant_options(const TransferSettings& settings) {
  const HttpClientOptions& options = settings.options;
  curl_easy_setopt(easy_, CURLOPT_PRIVATE, this);
  curl_easy_setopt(easy_, CURLOPT_ERRORBUFFER, said_.data());
  curl_easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy_, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  curl_easy_setopt(easy_, CURLOPT_PATH_AS_IS, 1L);
  // A proxy's word on the way is not the beginning of the reply.
  curl_easy_setopt(easy_, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(easy_, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(easy_, CURLOPT_TCP_NODELAY, 1L);
  curl_easy_setopt(easy_, CURLOPT_MAXAGE_CONN, kMostIdleSeconds);
  curl_easy_setopt(easy_, CURLOPT_USERAGENT, "leat");
  curl_easy_setopt(easy_, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(options.connect_timeout.count()));
  curl_easy_setopt(easy_, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2);
  if (!settings.ca_bundle.empty()) {
    curl_easy_setopt(easy_, CURLOPT_CAINFO, settings.ca_bundle.c_str());
  }
  // Without this, libcurl would look for a proxy in the
  // environment at each request.
  if (!settings.uses_proxy) curl_easy_setopt(easy_, CURLOPT_PROXY, "");
  curl_easy_setopt(easy_, CURLOPT_HEADERFUNCTION, &CurlTransfer::on_header);
  curl_easy_setopt(easy_, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, &CurlTransfer::on_body);
  curl_easy_setopt(easy_, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(easy_, CURLOPT_READFUNCTION, &CurlTransfer::on_upload);
  curl_easy_setopt(easy_, CURLOPT_READDATA, this);
  curl_easy_setopt(easy_, CURLOPT_SEEKFUNCTION, &CurlTransfer::on_rewind);
  curl_easy_setopt(easy_, CURLOPT_SEEKDATA, this);
  curl_easy_setopt(easy_, CURLOPT_OPENSOCKETFUNCTION, &CurlTransfer::on_open);
  curl_easy_setopt(easy_, CURLOPT_OPENSOCKETDATA, this);
  curl_easy_setopt(easy_, CURLOPT_CLOSESOCKETFUNCTION, &CurlTransfer::on_close);
  // Not `this`: connections outlive the transfer that opened them.
  curl_easy_setopt(easy_, CURLOPT_CLOSESOCKETDATA, &sockets_);
}

void CurlTransfer::begin(std::string resolved, TimePoint now) {
  is_busy_ = true;
  begun_at_ = now;
  resolved_ = std::move(resolved);
  resolve_list_ = {.data = resolved_.data(), .next = nullptr};
  said_[0] = '\0';
  transfer_.sink.open(request());
  link_headers();
  set_method();
  const std::size_t into_bytes = request().into.size();
  const std::size_t expected_bytes =
      into_bytes == 0 ? kMostBufferBytes : kHeadBytes + into_bytes;
  curl_easy_setopt(easy_, CURLOPT_BUFFERSIZE,
                   static_cast<long>(std::clamp(
                       expected_bytes, kLeastBufferBytes, kMostBufferBytes)));
  curl_easy_setopt(easy_, CURLOPT_URL, request().url.c_str());
  curl_easy_setopt(easy_, CURLOPT_HTTPHEADER,
                   header_list_.empty() ? nullptr : header_list_.data());
  curl_easy_setopt(easy_, CURLOPT_RESOLVE,
                   resolved_.empty() ? nullptr : &resolve_list_);
}

void CurlTransfer::set_method() {
  const HttpRequest& request = this->request();
  // This also takes NOBODY and UPLOAD back.
  curl_easy_setopt(easy_, CURLOPT_HTTPGET, 1L);
  curl_easy_setopt(easy_, CURLOPT_CUSTOMREQUEST, nullptr);
  if (request.method == "GET" && request.body.empty()) return;
  if (request.method == "HEAD") {
    curl_easy_setopt(easy_, CURLOPT_NOBODY, 1L);
    return;
  }
  if (!request.body.empty() || request.method == "PUT" ||
      request.method == "POST") {
    curl_easy_setopt(easy_, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(easy_, CURLOPT_INFILESIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
  }
  curl_easy_setopt(easy_, CURLOPT_CUSTOMREQUEST, request.method.c_str());
}

void CurlTransfer::link_headers() {
  // Without waiting for "100 Continue": most servers never say it.
  static char expect_nothing[] = "Expect:";
  std::vector<std::string>& headers = transfer_.submission.request.headers;
  header_list_.clear();
  header_list_.reserve(headers.size() + 1);
  for (std::string& header : headers) {
    const std::size_t colon = header.find(':');
    // libcurl takes "Name:" to mean that it must not send that header.
    if (colon != std::string::npos &&
        trimmed(std::string_view(header).substr(colon + 1)).empty()) {
      header.resize(colon + 1);
      header[colon] = ';';
    }
    header_list_.push_back({.data = header.data(), .next = nullptr});
  }
  if (!request().body.empty()) {
    header_list_.push_back({.data = expect_nothing, .next = nullptr});
  }
  for (std::size_t i = 1; i < header_list_.size(); ++i) {
    header_list_[i - 1].next = &header_list_[i];
  }
}

std::size_t CurlTransfer::on_header(char* line, std::size_t one,
                                    std::size_t size, void* self) {
  auto& carrier = *static_cast<CurlTransfer*>(self);
  carrier.received(one * size);
  if (carrier.hear_header({line, one * size})) return one * size;
  carrier.is_refused_ = true;
  return 0;  // Anything but the size ends the transfer.
}

bool CurlTransfer::hear_header(std::string_view line) {
  if (line.starts_with("HTTP/")) {
    return transfer_.sink.hear_status(status_in(line));
  }
  if (trimmed(line).empty()) {
    transfer_.sink.hear_head_end();
    return true;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) {
    return transfer_.sink.hear_header({}, trimmed(line));
  }
  return transfer_.sink.hear_header(line.substr(0, colon),
                                    trimmed(line.substr(colon + 1)));
}

void CurlTransfer::received(std::size_t bytes) {
  if (!transfer_.watch.has_begun() && request().body.empty()) {
    transfer_.watch.sent(begun_at_ + since_begin(CURLINFO_PRETRANSFER_TIME_T));
  }
  transfer_.watch.received(bytes, clock_.now());
}

std::size_t CurlTransfer::on_body(char* bytes, std::size_t one,
                                  std::size_t size, void* self) {
  auto& carrier = *static_cast<CurlTransfer*>(self);
  const std::string_view piece(bytes, one * size);
  carrier.received(piece.size());
  if (carrier.transfer_.sink.hear_body(piece)) return piece.size();
  carrier.is_refused_ = true;
  return 0;  // Anything but the size ends the transfer.
}

std::size_t CurlTransfer::on_upload(char* into, std::size_t one,
                                    std::size_t size, void* self) {
  auto& transfer = *static_cast<CurlTransfer*>(self);
  const auto left = transfer.request().body.subspan(transfer.sent_bytes_);
  const std::size_t count = std::min(one * size, left.size());
  std::memcpy(into, left.data(), count);
  transfer.sent_bytes_ += count;
  transfer.transfer_.watch.sent(transfer.clock_.now());
  return count;
}

int CurlTransfer::on_rewind(void* self, curl_off_t offset, int origin) {
  auto& transfer = *static_cast<CurlTransfer*>(self);
  if (origin != SEEK_SET || offset < 0 ||
      static_cast<std::size_t>(offset) > transfer.request().body.size()) {
    return CURL_SEEKFUNC_FAIL;
  }
  transfer.sent_bytes_ = static_cast<std::size_t>(offset);
  return CURL_SEEKFUNC_OK;
}

curl_socket_t CurlTransfer::on_open(void* self, curlsocktype /*purpose*/,
                                    curl_sockaddr* address) {
  auto& transfer = *static_cast<CurlTransfer*>(self);
  const curl_socket_t opened =
      transfer.sockets_.open_socket(transfer, *address);
  if (opened == CURL_SOCKET_BAD && (errno == EMFILE || errno == ENFILE)) {
    transfer.is_out_of_files_ = true;
  }
  return opened;
}

int CurlTransfer::on_close(void* sockets, curl_socket_t socket) {
  return static_cast<SocketOwner*>(sockets)->close_socket(socket);
}

Result<HttpReply> CurlTransfer::outcome(CURLcode code) {
  if (!is_refused_ && code != CURLE_OK) return failure(code);
  Result<HttpReply> reply = transfer_.sink.outcome();
  if (reply) {
    reply->until_first_byte = since_begin(CURLINFO_STARTTRANSFER_TIME_T);
    reply->until_last_byte = since_begin(CURLINFO_TOTAL_TIME_T);
  }
  return reply;
}

std::optional<Error> CurlTransfer::check(TimePoint now) {
  ReplyWatch& watch = transfer_.watch;
  if (now < watch.deadline()) return std::nullopt;
  if (!watch.has_begun() && request().body.empty()) {
    const Nanoseconds connected_after =
        since_begin(CURLINFO_PRETRANSFER_TIME_T);
    // Until it is connected, libcurl's own timeout holds.
    watch.sent(connected_after == Nanoseconds(0) ? now
                                                 : begun_at_ + connected_after);
  }
  const auto late = watch.check(now);
  if (!late) return std::nullopt;
  return transfer_.error(ErrorCode::kDeadlineExceeded, *late);
}

CurlTransfer::Tried CurlTransfer::connected_to() const {
  const char* address = nullptr;
  long port = 0;
  curl_easy_getinfo(easy_, CURLINFO_PRIMARY_IP, &address);
  curl_easy_getinfo(easy_, CURLINFO_PRIMARY_PORT, &port);
  return {.address = address != nullptr ? address : "",
          .port = static_cast<std::uint16_t>(port)};
}

Nanoseconds CurlTransfer::since_begin(CURLINFO what) const {
  curl_off_t microseconds = 0;
  curl_easy_getinfo(easy_, what, &microseconds);
  return std::chrono::microseconds(microseconds);
}

Error CurlTransfer::failure(CURLcode code) const {
  if (is_out_of_files_) {
    return transfer_.error(
        ErrorCode::kResourceExhausted,
        "no file descriptor is left for a connection; raise the limit "
        "(ulimit -n) or lower max_in_flight");
  }
  const std::string_view what =
      said_[0] != '\0' ? said_.data() : curl_easy_strerror(code);
  if (code == CURLE_PARTIAL_FILE) return transfer_.sink.cut_short(what);
  return transfer_.error(code_for(code),
                         fmt::format("{}; {}", what, remedy(code)));
}

void CurlTransfer::clear() {
  if (!resolved_.empty()) {
    curl_easy_setopt(easy_, CURLOPT_RESOLVE, nullptr);
  }
  resolved_.clear();
  is_busy_ = false;
  tried_ = {};
  sent_bytes_ = 0;
  is_refused_ = false;
  is_out_of_files_ = false;
}

}  // namespace leat
