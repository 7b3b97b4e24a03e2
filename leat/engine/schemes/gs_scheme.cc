// gs://bucket/prefix: Google Cloud Storage.

#include <utility>

#include "leat/engine/schemes/schemes.h"
#include "leat/store/gcs/gcs_store.h"
#include "leat/store/gcs/settings.h"

namespace leat {
namespace {

Result<Driver> open_gs(const Url& url, const StoreOptions& options,
                       const Env& env, Metrics* metrics) {
  CredentialTools tools{.env = env};
  tools.ca_bundle = options.ca_bundle;
  LEAT_TRY(GcsSettings settings,
           resolve_gcs_settings(url.authority,
                                {.endpoint_url = options.endpoint_url,
                                 .no_sign_request = options.no_sign_request,
                                 .requester_pays = options.requester_pays,
                                 .ca_bundle = options.ca_bundle},
                                tools));
  Driver driver = driver_at(url, url.path, settings.endpoint.url());
  // Each protocol has ETags of its own.
  if (settings.hmac_keys) driver.identity += "\nhmac";
  auto http = open_http_client(
      http_options(options, settings.ca_bundle, driver.notes), metrics);
  driver.store =
      open_gcs_store(url.authority, std::move(settings), std::move(http));
  return driver;
}

}  // namespace

constinit const Scheme kGsScheme = {"gs", open_gs};

}  // namespace leat
