#include "leat/store/gcs/diagnosis.h"

#include "leat/store/cloud/diagnosis.h"

namespace leat {

std::optional<Diagnosis> diagnose_gcs_access(std::string_view bucket,
                                             const GcsOptions& options,
                                             const CredentialTools& tools,
                                             const std::stop_token& stop) {
  const auto settings = resolve_gcs_settings(bucket, options, tools);
  if (!settings) return std::nullopt;
  if (settings->hmac_keys) {
    return known_credentials("the HMAC key " +
                             settings->hmac_keys->access_key_id +
                             " of the environment, over S3's protocol");
  }
  if (settings->provider) {
    return diagnose_place(*settings->provider, *tools.clock,
                          "docs/howto/clouds.md", stop);
  }
  return no_credentials(options.no_sign_request
                            ? "not wanted (--no-sign-request)"
                            : "STORAGE_EMULATOR_HOST names an emulator, which "
                              "asks nobody who they are");
}

}  // namespace leat
