// The facts about access to Azure Blob Storage that a user should know.
#pragma once
#include <optional>
#include <stop_token>

#include "leat/store/azure/settings.h"
#include "leat/store/cloud/provider.h"
#include "leat/store/diagnosis.h"

namespace leat {

/// Tells whose requests they are, and for how long: a SAS says it. Blocks:
/// asks for a token if there is neither key nor SAS. Nullopt if
/// resolve_azure_settings() fails, whose error whoever opens the store gets.
std::optional<Diagnosis> diagnose_azure_access(const AzurePlace& place,
                                               const AzureOptions& options,
                                               const CredentialTools& tools,
                                               const std::stop_token& stop);

}  // namespace leat
