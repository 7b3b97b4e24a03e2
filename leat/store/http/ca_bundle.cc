#include "leat/store/http/ca_bundle.h"

#include <unistd.h>

namespace leat {

std::string find_ca_bundle(const std::string& configured, const Env& env) {
  if (!configured.empty()) return configured;
  for (const char* variable : {"SSL_CERT_FILE", "CURL_CA_BUNDLE"}) {
    if (auto path = env(variable); path && !path->empty()) return *path;
  }
  for (const char* path : {
           "/etc/ssl/certs/ca-certificates.crt",  // Debian, Ubuntu, Arch
           "/etc/pki/tls/certs/ca-bundle.crt",    // Fedora, RHEL
           "/etc/ssl/ca-bundle.pem",              // openSUSE
           "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
           "/etc/ssl/cert.pem",  // Alpine
       }) {
    if (access(path, R_OK) == 0) return path;
  }
  return {};
}

}  // namespace leat
