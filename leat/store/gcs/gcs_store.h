// Objects in a bucket of Google Cloud Storage.
#pragma once
#include <memory>
#include <string_view>

#include "leat/store/gcs/settings.h"
#include "leat/store/http/http_client.h"
#include "leat/store/store.h"

namespace leat {

/// Opens a bucket with settings from resolve_gcs_settings(). Sends no request.
///
/// Speaks the JSON API; with HMAC keys, S3's protocol, by that driver. Over the
/// JSON API, `etag` is the object's generation: reads are ranged GETs of that
/// generation alone. The store sends each request once. See layers/ for
/// retries.
///
/// Threads, Lifetime: as Store says; owns `http`.
std::unique_ptr<Store> open_gcs_store(std::string_view bucket,
                                      GcsSettings settings,
                                      std::unique_ptr<HttpClient> http);

}  // namespace leat
