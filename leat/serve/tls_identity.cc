#include "leat/serve/tls_identity.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdint>
#include <memory>

namespace leat {
namespace {

template <auto kFree>
struct Freed {
  template <class T>
  void operator()(T* pointer) const {
    kFree(pointer);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>>;
using Memory = std::unique_ptr<BIO, Freed<BIO_free>>;

constexpr long kGoodForSeconds = 31L * 24 * 3600;
constexpr long kClockMayBeAhead = 24L * 3600;

std::string alternative_names(const std::string& host) {
  std::string names = "DNS:localhost,IP:127.0.0.1,IP:::1";
  unsigned char address[16];
  if (inet_pton(AF_INET, host.c_str(), address) == 1 ||
      inet_pton(AF_INET6, host.c_str(), address) == 1) {
    names += ",IP:" + host;
  }
  return names;
}

bool extend(X509* certificate, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  const Extension extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool describe(X509* certificate, EVP_PKEY* key, const std::string& host) {
  std::uint64_t serial = 0;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) != 1)
    return false;
  X509_NAME* name = X509_get_subject_name(certificate);
  const auto* common =
      reinterpret_cast<const unsigned char*>("leat self-signed");
  return X509_set_version(certificate, X509_VERSION_3) == 1 &&
         ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate),
                                 serial >> 1) == 1 &&
         X509_gmtime_adj(X509_getm_notBefore(certificate), -kClockMayBeAhead) &&
         X509_gmtime_adj(X509_getm_notAfter(certificate), kGoodForSeconds) &&
         X509_set_pubkey(certificate, key) == 1 &&
         X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, common, -1, -1,
                                    0) == 1 &&
         X509_set_issuer_name(certificate, name) == 1 &&
         extend(certificate, NID_basic_constraints, "critical,CA:TRUE") &&
         extend(certificate, NID_key_usage,
                "critical,digitalSignature,keyCertSign") &&
         extend(certificate, NID_ext_key_usage, "serverAuth") &&
         extend(certificate, NID_subject_key_identifier, "hash") &&
         extend(certificate, NID_authority_key_identifier, "keyid:always") &&
         extend(certificate, NID_subject_alt_name, alternative_names(host));
}

std::string text_of(BIO* memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);
  return size > 0 ? std::string(data, static_cast<std::size_t>(size))
                  : std::string();
}

}  // namespace

Result<TlsIdentity> make_self_signed_identity(const std::string& host) {
  const Error failed(ErrorCode::kInternal,
                     "OpenSSL could not make a self-signed certificate");
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate(X509_new());
  if (!key || !certificate || !describe(certificate.get(), key.get(), host) ||
      X509_sign(certificate.get(), key.get(), EVP_sha256()) == 0) {
    return failed;
  }
  const Memory certificate_pem(BIO_new(BIO_s_mem()));
  const Memory key_pem(BIO_new(BIO_s_mem()));
  if (!certificate_pem || !key_pem ||
      PEM_write_bio_X509(certificate_pem.get(), certificate.get()) != 1 ||
      PEM_write_bio_PrivateKey(key_pem.get(), key.get(), nullptr, nullptr, 0,
                               nullptr, nullptr) != 1) {
    return failed;
  }
  return TlsIdentity{text_of(certificate_pem.get()), text_of(key_pem.get())};
}

}  // namespace leat
