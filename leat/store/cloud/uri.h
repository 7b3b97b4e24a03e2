// Percent-encoding of keys and queries.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat {

enum class Slash { kKeep, kEncode };

/// Percent-encodes all but A-Z a-z 0-9 - . _ ~ (RFC 3986), with upper-case
/// digits. Keys keep their slashes, the parts of a query do not.
std::string uri_encode(std::string_view text, Slash slash);
void append_uri_encoded(std::string& out, std::string_view text, Slash slash);

/// Undoes it. Invalid escapes stay as they are; '+' stays '+'.
std::string uri_decode(std::string_view text);

/// Names and values of a query, not encoded.
using QueryPairs = std::vector<std::pair<std::string, std::string>>;

/// `name=value&…` encoded and in canonical order; a name without a value is
/// `name=`. Send the very same text as the query of the request.
std::string canonical_query(const QueryPairs& query);

}  // namespace leat
