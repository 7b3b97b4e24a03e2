// Addresses that are not used for a while.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/clock.h"

namespace leat {

/// Remembers which addresses lately refused a connection or let a request
/// stall. A host's other addresses are preferred to them.
///
/// Threads: one.
class AddressBench {
 public:
  static constexpr std::chrono::seconds kFor{30};

  void put(std::string_view address, std::uint16_t port, TimePoint now);
  bool has(std::string_view address, std::uint16_t port, TimePoint now) const;

 private:
  struct Benched {
    std::string address;
    std::uint16_t port = 0;
    TimePoint until;
  };
  std::vector<Benched> benched_;
};

}  // namespace leat
