// The facts about access to Google Cloud Storage that a user should know.
#pragma once
#include <optional>
#include <stop_token>
#include <string_view>

#include "leat/store/cloud/provider.h"
#include "leat/store/diagnosis.h"
#include "leat/store/gcs/settings.h"

namespace leat {

/// Tells whose requests they are, and for how long. Blocks: asks for a token.
/// Nullopt if resolve_gcs_settings() fails, whose error whoever opens the store
/// gets.
std::optional<Diagnosis> diagnose_gcs_access(std::string_view bucket,
                                             const GcsOptions& options,
                                             const CredentialTools& tools,
                                             const std::stop_token& stop);

}  // namespace leat
