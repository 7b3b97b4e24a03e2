#include "leat/cache/memcached/rendezvous.h"

#include "leat/base/buffer.h"
#include "leat/base/check.h"

namespace leat {

Rendezvous::Rendezvous(const std::vector<std::string>& servers) {
  LEAT_CHECK(!servers.empty());
  seeds_.reserve(servers.size());
  for (const std::string& server : servers) {
    seeds_.push_back(xxh3_64(as_bytes(server)));
  }
}

std::size_t Rendezvous::server_of(const Hash128& key) const {
  std::size_t best = 0;
  std::uint64_t highest = 0;
  for (std::size_t i = 0; i < seeds_.size(); ++i) {
    const std::uint64_t weight = mix64(seeds_[i] ^ key.low);
    if (i == 0 || weight > highest ||
        (weight == highest && seeds_[i] > seeds_[best])) {
      best = i;
      highest = weight;
    }
  }
  return best;
}

}  // namespace leat
