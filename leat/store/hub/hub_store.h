// Files of a dataset on the Hugging Face Hub.
#pragma once
#include <memory>

#include "leat/store/http/http_client.h"
#include "leat/store/hub/settings.h"
#include "leat/store/store.h"

namespace leat {

/// Opens a dataset with settings from resolve_hub_settings(). Sends no request.
///
/// Reads are ranged GETs of resolve URLs, whose redirects are followed; the
/// token goes to the Hub alone. Lists are pages of the repository's tree. The
/// Hub takes no writes here: they are commits. The store sends each request
/// once. See layers/ for retries.
///
/// Threads, Lifetime: as Store says; owns `http`.
std::unique_ptr<Store> open_hub_store(HubPlace place, HubSettings settings,
                                      std::unique_ptr<HttpClient> http);

}  // namespace leat
