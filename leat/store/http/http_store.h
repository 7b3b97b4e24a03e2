// Objects under a URL of a plain web server.
#pragma once
#include <memory>
#include <string>

#include "leat/store/http/http_client.h"
#include "leat/store/store.h"

namespace leat {

/// A store over the server at `base_url` (http or https, percent-encoded, no
/// query): the key is what follows it and a slash.
///
/// Reads are ranged GETs, stat is a HEAD. A plain web server can neither list
/// nor accept writes, so both are kInvalidArgument; a catalogue made
/// elsewhere names the objects. An ETag in the request is sent as If-Match
/// and compared with the reply's; weak ones are only compared. A reply to a
/// range request that carries the whole object is accepted only if the whole
/// was requested.
///
/// Errors:
///   kInvalidArgument  not such a URL
Result<std::unique_ptr<Store>> open_http_store(
    const std::string& base_url, std::unique_ptr<HttpClient> client);

}  // namespace leat
