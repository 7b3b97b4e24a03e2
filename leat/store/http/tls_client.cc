#include "leat/store/http/tls_client.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>
#include <cstring>
#include <utility>

#include "leat/base/errors.h"

namespace leat {
namespace {

/// As a list of length-prefixed names (RFC 7301): "http/1.1" alone.
constexpr std::array<unsigned char, 9> kHttp11 = {8,   'h', 't', 't', 'p',
                                                  '/', '1', '.', '1'};

std::string last_reason() {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : "no reason was given";
}

Error no_memory() {
  return exhausted("TLS could not be set up: {}", last_reason());
}

}  // namespace

void SslFree::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }
void SslFree::operator()(ssl_st* session) const { SSL_free(session); }

Result<TlsClient> TlsClient::open(const std::string& ca_bundle) {
  ERR_clear_error();
  SslContext context(SSL_CTX_new(TLS_client_method()));
  if (context == nullptr) return no_memory();
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  // A connection that is idle gives its buffers back.
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS |
                                      SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_alpn_protos(context.get(), kHttp11.data(), kHttp11.size());
  const bool has_authorities =
      ca_bundle.empty()
          ? SSL_CTX_set_default_verify_paths(context.get()) == 1
          : SSL_CTX_load_verify_file(context.get(), ca_bundle.c_str()) == 1;
  if (!has_authorities) {
    return invalid(
        "the certificates of {} cannot be read: {}; check the PEM file that "
        "SSL_CERT_FILE (for s3:// also AWS_CA_BUNDLE) names",
        ca_bundle, last_reason());
  }
  return TlsClient(std::move(context));
}

Result<SslSession> TlsClient::start(int socket, const std::string& host,
                                    bool host_is_address) const {
  ERR_clear_error();
  SslSession session(SSL_new(context_.get()));
  if (session == nullptr || SSL_set_fd(session.get(), socket) != 1) {
    return no_memory();
  }
  const bool is_named =
      host_is_address
          ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session.get()),
                                          host.c_str()) == 1
          : SSL_set1_host(session.get(), host.c_str()) == 1 &&
                SSL_set_tlsext_host_name(session.get(), host.c_str()) == 1;
  if (!is_named) return no_memory();
  SSL_set_connect_state(session.get());
  return session;
}

Error tls_failure(const ssl_st& tls, int number) {
  if (const long verdict = SSL_get_verify_result(&tls); verdict != X509_V_OK) {
    return denied(
        "the server's certificate does not verify: {}; if it is your own, name "
        "its PEM file in SSL_CERT_FILE (for s3:// also in AWS_CA_BUNDLE)",
        X509_verify_cert_error_string(verdict));
  }
  if (ERR_peek_last_error() != 0) {
    return unavailable(
        "TLS failed: {}; if the port speaks plain http, write http:// in the "
        "place of https://",
        last_reason());
  }
  return unavailable("{}; the connection broke", number != 0
                                                     ? std::strerror(number)
                                                     : "closed by the server");
}

}  // namespace leat
