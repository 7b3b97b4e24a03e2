// The places that Google's tokens come from.
#pragma once
#include <memory>
#include <string>

#include "leat/base/result.h"
#include "leat/store/cloud/provider.h"

namespace leat {

struct TokenSource {
  std::shared_ptr<CredentialProvider> provider;
  std::string project;  ///< That of the file; may be empty.
};

/// The source that Google's libraries would use: the file that
/// GOOGLE_APPLICATION_CREDENTIALS names, gcloud's application-default
/// credentials, or else the metadata server. Reads files, asks nobody.
///
/// Errors: as parse_google_file(), and
///   kPermissionDenied  the file is not there
Result<TokenSource> find_token_source(const CredentialTools& tools);

}  // namespace leat
