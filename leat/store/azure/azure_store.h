// Blobs in a container of Azure Blob Storage.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "leat/store/azure/settings.h"
#include "leat/store/cloud/http_date.h"
#include "leat/store/http/http_client.h"
#include "leat/store/store.h"

namespace leat {

/// Opens a container with settings from resolve_azure_settings(). Sends no
/// request. `url` is that of the container, for messages.
///
/// Reads are ranged GETs, with If-Match if an ETag is given; writes are Put
/// Blob. The store sends each request once. See layers/ for retries.
///
/// Threads, Lifetime: as Store says; owns `http`.
std::unique_ptr<Store> open_azure_store(std::string_view container,
                                        std::string url, AzureSettings settings,
                                        std::unique_ptr<HttpClient> http,
                                        WallNow now = &system_now);

}  // namespace leat
