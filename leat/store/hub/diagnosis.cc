#include "leat/store/hub/diagnosis.h"

#include "leat/store/cloud/diagnosis.h"

namespace leat {

std::optional<Diagnosis> diagnose_hub_access(const HubOptions& options,
                                             const Env& env) {
  const auto settings = resolve_hub_settings(options, env);
  if (!settings) return std::nullopt;
  if (!settings->token.empty()) {
    return known_credentials("the token of " + settings->token_source);
  }
  if (options.no_sign_request) {
    return no_credentials("not wanted (--no-sign-request)");
  }
  return no_credentials(
      "HF_TOKEN is not set, and nobody has run `hf auth login`; public "
      "datasets can be read, with the lowest limits");
}

}  // namespace leat
