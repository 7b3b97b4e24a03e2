// hf://datasets/OWNER/NAME[@REVISION]/prefix: datasets on the Hugging Face Hub.

#include <utility>

#include "leat/engine/schemes/schemes.h"
#include "leat/store/hub/diagnosis.h"
#include "leat/store/hub/hub_store.h"
#include "leat/store/hub/settings.h"

namespace leat {
namespace {

HubOptions hub_options(const StoreOptions& options) {
  return {.endpoint_url = options.endpoint_url,
          .no_sign_request = options.no_sign_request};
}

Result<Driver> open_hf(const Url& url, const StoreOptions& options,
                       const Env& env, Metrics* metrics) {
  // "hf://OWNER/NAME" is a model's place: refused as such.
  LEAT_TRY(HubPlace place,
           parse_hub_path(url.authority == "datasets" ? url.path : ""));
  LEAT_TRY(HubSettings settings,
           resolve_hub_settings(hub_options(options), env));
  Driver driver = driver_at(url, place.path, settings.endpoint.url());
  auto http = open_http_client(
      http_options(options, options.ca_bundle, driver.notes), metrics);
  driver.store =
      open_hub_store(std::move(place), std::move(settings), std::move(http));
  return driver;
}

std::vector<Diagnosis> diagnose_hf(const Url&, const StoreOptions& options,
                                   const Env& env, const std::stop_token&) {
  return one_or_none(diagnose_hub_access(hub_options(options), env));
}

}  // namespace

constinit const Scheme kHfScheme = {"hf", open_hf, diagnose_hf};

}  // namespace leat
