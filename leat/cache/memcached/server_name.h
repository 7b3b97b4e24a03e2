// The name that a user gives to a memcached server.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "leat/base/result.h"

namespace leat {

struct ServerName {
  std::string host;
  std::uint16_t port = 0;

  /// "host:port" or "[v6]:port": one spelling for each server.
  std::string text() const;
};

/// Reads "host:port" or "[v6]:port"; the port may be missing, for 11211.
///
/// Errors:
///   kInvalidArgument  there is no host, or no port from 1 to 65535
Result<ServerName> parse_server(std::string_view text);

}  // namespace leat
