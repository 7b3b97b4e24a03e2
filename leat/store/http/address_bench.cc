#include "leat/store/http/address_bench.h"

#include <algorithm>

namespace leat {

void AddressBench::put(std::string_view address, std::uint16_t port,
                       TimePoint now) {
  std::erase_if(benched_, [&](const Benched& one) {
    return now >= one.until || (one.port == port && one.address == address);
  });
  benched_.push_back(
      {.address = std::string(address), .port = port, .until = now + kFor});
}

bool AddressBench::has(std::string_view address, std::uint16_t port,
                       TimePoint now) const {
  return std::ranges::any_of(benched_, [&](const Benched& one) {
    return now < one.until && one.port == port && one.address == address;
  });
}

}  // namespace leat
