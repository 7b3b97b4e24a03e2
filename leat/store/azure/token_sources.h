// The places that tokens of Microsoft Entra come from.
#pragma once
#include <memory>

#include "leat/base/result.h"
#include "leat/store/cloud/provider.h"

namespace leat {

/// The source that Azure's libraries would use: a client secret, a workload
/// identity, or else the managed identity of this machine. Asks nobody.
///
/// Errors:
///   kInvalidArgument  an invalid tenant or authority
Result<std::shared_ptr<CredentialProvider>> find_azure_token_source(
    const CredentialTools& tools);

}  // namespace leat
