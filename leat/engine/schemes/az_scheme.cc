// az://container/prefix, abfss://container@account.dfs.core.windows.net/prefix:
// Azure Blob Storage.

#include <utility>

#include "leat/engine/schemes/schemes.h"
#include "leat/store/azure/azure_store.h"
#include "leat/store/azure/settings.h"

namespace leat {
namespace {

Result<Driver> open_azure(const Url& url, const StoreOptions& options,
                          const Env& env, Metrics* metrics) {
  CredentialTools tools{.env = env};
  tools.ca_bundle = options.ca_bundle;
  AzurePlace place{.container = url.authority};
  if (const std::size_t at = url.authority.find('@'); at != std::string::npos) {
    place = {.container = url.authority.substr(0, at),
             .host = url.authority.substr(at + 1)};
  }
  LEAT_TRY(AzureSettings settings,
           resolve_azure_settings(place,
                                  {.endpoint_url = options.endpoint_url,
                                   .no_sign_request = options.no_sign_request,
                                   .ca_bundle = options.ca_bundle},
                                  tools));
  Driver driver = driver_at(url, url.path, settings.endpoint.url());
  auto http = open_http_client(
      http_options(options, settings.ca_bundle, driver.notes), metrics);
  driver.store = open_azure_store(place.container, url.bucket(),
                                  std::move(settings), std::move(http));
  return driver;
}

}  // namespace

constinit const Scheme kAzScheme = {"az", open_azure};
constinit const Scheme kAbfssScheme = {"abfss", open_azure};

}  // namespace leat
