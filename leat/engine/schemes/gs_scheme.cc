// gs://bucket/prefix: Google Cloud Storage.

#include <utility>

#include "leat/engine/schemes/schemes.h"
#include "leat/store/gcs/diagnosis.h"
#include "leat/store/gcs/gcs_store.h"
#include "leat/store/gcs/settings.h"

namespace leat {
namespace {

GcsOptions gcs_options(const StoreOptions& options) {
  return {.endpoint_url = options.endpoint_url,
          .no_sign_request = options.no_sign_request,
          .requester_pays = options.requester_pays,
          .ca_bundle = options.ca_bundle};
}

Result<Driver> open_gs(const Url& url, const StoreOptions& options,
                       const Env& env, Metrics* metrics) {
  LEAT_TRY(GcsSettings settings,
           resolve_gcs_settings(url.authority, gcs_options(options),
                                tools_for(options, env)));
  Driver driver = driver_at(url, url.path, settings.endpoint.url());
  // Each protocol has ETags of its own.
  if (settings.hmac_keys) driver.identity += "\nhmac";
  auto http = open_http_client(
      http_options(options, settings.ca_bundle, driver.notes), metrics);
  driver.store =
      open_gcs_store(url.authority, std::move(settings), std::move(http));
  return driver;
}

std::vector<Diagnosis> diagnose_gs(const Url& url, const StoreOptions& options,
                                   const Env& env,
                                   const std::stop_token& stop) {
  return one_or_none(diagnose_gcs_access(url.authority, gcs_options(options),
                                         tools_for(options, env), stop));
}

}  // namespace

constinit const Scheme kGsScheme = {"gs", open_gs, diagnose_gs};

}  // namespace leat
