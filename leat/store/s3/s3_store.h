// Objects in a bucket of S3, or of any service that speaks its protocol.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "leat/base/env.h"
#include "leat/metrics/metrics.h"
#include "leat/store/http/http_client.h"
#include "leat/store/s3/request_maker.h"
#include "leat/store/s3/settings.h"
#include "leat/store/store.h"

namespace leat {

/// Opens a bucket with settings from resolve_s3_settings(). Sends no request.
///
/// Reads are ranged GETs, with If-Match if an ETag is given; lists are
/// ListObjectsV2. The store sends each request once. See layers/ for retries;
/// S3Settings::max_attempts bounds them.
///
/// Threads, Lifetime: as Store says; owns `http`.
std::unique_ptr<Store> open_s3_store(std::string_view bucket,
                                     S3Settings settings,
                                     std::unique_ptr<HttpClient> http,
                                     WallNow now = &system_now);

/// The same, from the user's options and the environment. `http.ca_bundle` is
/// replaced if options or environment name one. `metrics` may be null, else
/// must outlive the store.
///
/// Errors: as resolve_s3_settings
Result<std::unique_ptr<Store>> open_s3_store(std::string_view bucket,
                                             const S3Options& options,
                                             const Env& env,
                                             HttpClientOptions http,
                                             Metrics* metrics);

}  // namespace leat
