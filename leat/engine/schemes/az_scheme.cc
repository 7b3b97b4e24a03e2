// az://container/prefix, abfss://container@account.dfs.core.windows.net/prefix:
// Azure Blob Storage.

#include <utility>

#include "leat/engine/schemes/schemes.h"
#include "leat/store/azure/azure_store.h"
#include "leat/store/azure/diagnosis.h"
#include "leat/store/azure/settings.h"

namespace leat {
namespace {

AzurePlace place_of(const Url& url) {
  const std::size_t at = url.authority.find('@');
  if (at == std::string::npos) return {.container = url.authority, .host = ""};
  return {.container = url.authority.substr(0, at),
          .host = url.authority.substr(at + 1)};
}

AzureOptions azure_options(const StoreOptions& options) {
  return {.endpoint_url = options.endpoint_url,
          .no_sign_request = options.no_sign_request,
          .ca_bundle = options.ca_bundle};
}

Result<Driver> open_azure(const Url& url, const StoreOptions& options,
                          const Env& env, Metrics* metrics) {
  const AzurePlace place = place_of(url);
  LEAT_TRY(AzureSettings settings,
           resolve_azure_settings(place, azure_options(options),
                                  tools_for(options, env)));
  Driver driver = driver_at(url, url.path, settings.endpoint.url());
  auto http = open_http_client(
      http_options(options, settings.ca_bundle, driver.notes), metrics);
  driver.store = open_azure_store(place.container, url.bucket(),
                                  std::move(settings), std::move(http));
  return driver;
}

std::vector<Diagnosis> diagnose_azure(const Url& url,
                                      const StoreOptions& options,
                                      const Env& env,
                                      const std::stop_token& stop) {
  return one_or_none(diagnose_azure_access(
      place_of(url), azure_options(options), tools_for(options, env), stop));
}

}  // namespace

constinit const Scheme kAzScheme = {"az", open_azure, diagnose_azure};
constinit const Scheme kAbfssScheme = {"abfss", open_azure, diagnose_azure};

}  // namespace leat
