// Chooses which server holds a record.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "leat/base/hash.h"

namespace leat {

/// Consistent hashing by the highest random weight (Thaler and Ravishankar,
/// "Using Name-Based Mappings to Increase Hit Rates", IEEE/ACM ToN 1998): every
/// server draws a number for the record, and the highest wins. Shares are even
/// without a ring of points, and a server that comes or goes moves only its own
/// share. O(servers).
///
/// A value type without side effects. Gives the same result in every process
/// that names the same servers, in any order.
class Rendezvous {
 public:
  /// REQUIRES: at least one server.
  explicit Rendezvous(const std::vector<std::string>& servers);

  /// The index of the server in the list given.
  std::size_t server_of(const Hash128& key) const;

 private:
  std::vector<std::uint64_t> seeds_;  // By server.
};

}  // namespace leat
