// The facts about access to the Hugging Face Hub that a user should know.
#pragma once
#include <optional>

#include "leat/base/env.h"
#include "leat/store/diagnosis.h"
#include "leat/store/hub/settings.h"

namespace leat {

/// Tells which token is shown. Asks nobody. Nullopt if resolve_hub_settings()
/// fails, whose error whoever opens the store gets.
std::optional<Diagnosis> diagnose_hub_access(const HubOptions& options,
                                             const Env& env);

}  // namespace leat
