// Finding the certificates that TLS trusts.
#pragma once
#include <string>

#include "leat/base/env.h"

namespace leat {

/// The PEM file to verify servers with: `configured` if not empty, else what
/// SSL_CERT_FILE or CURL_CA_BUNDLE names, else the first of the places where
/// distributions put it. Empty if there is none, which leaves it to libcurl.
///
/// A libcurl that was built on another machine knows that machine's path.
std::string find_ca_bundle(const std::string& configured, const Env& env);

}  // namespace leat
