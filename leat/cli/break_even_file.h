// The [[break_even]] tables of a file for `leat plan --simulate`:
// docs/reference/plan.md.
#pragma once
#include <string>
#include <vector>

#include "leat/base/result.h"
#include "leat/engine/toml_reader.h"
#include "leat/plan/break_even.h"

namespace leat {

struct NamedWay {
  Way way;
  /// The simulation that its epochs and lists come from; empty: the file says
  /// them.
  std::string simulation;
};

struct NamedBreakEven {
  std::string name;
  std::uint64_t epochs = 1;
  std::uint32_t nodes = 1;
  Prices prices;
  Billing billing;
  std::vector<NamedWay> ways;
};

/// Reads one table. `where` names it in messages.
///
/// Errors:
///   kInvalidArgument  a key that is unknown, missing or out of range; fewer
///                     than two ways, or two of one name
Result<NamedBreakEven> read_break_even(const toml::table& table,
                                       const std::string& where);

}  // namespace leat
