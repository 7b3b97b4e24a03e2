// Machines that can be rented, as a user writes them down:
// docs/reference/machines.md.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/engine/prices.h"
#include "leat/profile/recommend.h"

namespace leat {

struct MachineList {
  std::vector<Machine> machines;
  std::vector<std::string> as_of;  ///< For each machine's price.
  PricesAndBilling store;
};

/// Reads a file's text. `name` stands in messages.
///
/// Errors:
///   kInvalidArgument  not TOML, a key that is unknown, missing or out of
///                     range, two machines of one name, none: says which
Result<MachineList> parse_machine_list(std::string_view text,
                                       const std::string& name);

}  // namespace leat
