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
/// nor take what is written, so both are kInvalidArgument; a catalogue made
/// elsewhere says what there is. An ETag in the request goes as If-Match, and
/// is compared with the reply's; weak ones are only compared. A server that
/// answers a range with the whole object is believed only where the whole was
/// asked for.
///
/// Errors:
///   kInvalidArgument  not such a URL
Result<std::unique_ptr<Store>> open_http_store(
    const std::string& base_url, std::unique_ptr<HttpClient> client);

}  // namespace leat
