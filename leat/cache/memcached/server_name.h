// A user's name of a memcached server.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "leat/base/result.h"

namespace leat {

struct ServerName {
  std::string host;
  std::uint16_t port = 0;

  /// "host:port", "[v6]:port": one spelling for each server.
  std::string text() const;
};

/// Reads "host:port", "[v6]:port", or either without its port, for 11211.
///
/// Errors:
///   kInvalidArgument  there is no host, or no port from 1 to 65535
Result<ServerName> parse_server(std::string_view text);

}  // namespace leat
