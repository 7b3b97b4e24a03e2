// hf://datasets/OWNER/NAME[@REVISION]/prefix: datasets on the Hugging Face Hub.

#include <utility>

#include "leat/engine/schemes/schemes.h"
#include "leat/store/hub/hub_store.h"
#include "leat/store/hub/settings.h"

namespace leat {
namespace {

Result<Driver> open_hf(const Url& url, const StoreOptions& options,
                       const Env& env, Metrics* metrics) {
  // "hf://OWNER/NAME" is a model's place: refused as such.
  LEAT_TRY(HubPlace place,
           parse_hub_path(url.authority == "datasets" ? url.path : ""));
  LEAT_TRY(HubSettings settings,
           resolve_hub_settings({.endpoint_url = options.endpoint_url,
                                 .no_sign_request = options.no_sign_request},
                                env));
  Driver driver = driver_at(url, place.path, settings.endpoint.url());
  auto http = open_http_client(
      http_options(options, options.ca_bundle, driver.notes), metrics);
  driver.store =
      open_hub_store(std::move(place), std::move(settings), std::move(http));
  return driver;
}

}  // namespace

constinit const Scheme kHfScheme = {"hf", open_hf};

}  // namespace leat
