#include "leat/store/gcs/jwt.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "leat/store/cloud/digest.h"

namespace leat {
namespace {

template <auto Free>
struct FreeBy {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, FreeBy<&EVP_PKEY_free>>;
using Bio = std::unique_ptr<BIO, FreeBy<&BIO_free_all>>;
using Digest = std::unique_ptr<EVP_MD_CTX, FreeBy<&EVP_MD_CTX_free>>;

/// An encrypted key would be asked for on the terminal.
int no_password(char*, int, int, void*) { return -1; }

Result<std::string> rs256(const std::string& pem, std::string_view text) {
  const Error unusable(ErrorCode::kPermissionDenied,
                       "its private_key is no RSA key in PEM; download the "
                       "service account's key again");
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const Key key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, &no_password, nullptr));
  if (!key || EVP_PKEY_base_id(key.get()) != EVP_PKEY_RSA) return unusable;
  const Digest digest(EVP_MD_CTX_new());
  std::string signature(static_cast<std::size_t>(EVP_PKEY_size(key.get())),
                        '\0');
  std::size_t size = signature.size();
  if (EVP_DigestSignInit(digest.get(), nullptr, EVP_sha256(), nullptr,
                         key.get()) != 1 ||
      EVP_DigestSign(digest.get(),
                     reinterpret_cast<unsigned char*>(signature.data()), &size,
                     reinterpret_cast<const unsigned char*>(text.data()),
                     text.size()) != 1) {
    return unusable;
  }
  signature.resize(size);
  return signature;
}

/// The text of JSON; what is not UTF-8 is replaced.
std::string dumped(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Result<std::string> signed_jwt(const ServiceAccount& account,
                               std::string_view scope,
                               std::chrono::sys_seconds now) {
  nlohmann::json header = {{"alg", "RS256"}, {"typ", "JWT"}};
  if (!account.private_key_id.empty()) header["kid"] = account.private_key_id;
  const auto issued = now.time_since_epoch().count();
  const nlohmann::json claims = {{"iss", account.client_email},
                                 {"scope", scope},
                                 {"aud", account.token_uri},
                                 {"iat", issued},
                                 {"exp", issued + 3600}};
  std::string text =
      base64_url(dumped(header)) + "." + base64_url(dumped(claims));
  LEAT_TRY(const std::string signature, rs256(account.private_key, text));
  return text.append(".").append(base64_url(signature));
}

}  // namespace leat
