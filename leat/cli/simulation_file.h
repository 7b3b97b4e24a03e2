// The file that `leat plan --simulate` runs: docs/reference/plan.md.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/cli/break_even_file.h"
#include "leat/plan/deli_simulator.h"
#include "leat/plan/price.h"
#include "leat/plan/simulator.h"
#include "leat/plan/solar.h"

namespace leat {

struct NamedSimulation {
  std::string name;
  SimulationOptions options;
  Prices prices;
  Billing billing;
};

struct NamedDeli {
  std::string name;
  DeliOptions options;
  std::uint64_t samples = 0;
  std::uint32_t nodes = 1;
  std::uint64_t epochs = 1;
  std::uint64_t seed = 0;
};

struct NamedSolar {
  std::string name;
  SolarOptions options;
};

struct SimulationFile {
  std::vector<NamedSimulation> simulations;
  std::vector<NamedDeli> deli;
  std::vector<NamedSolar> solar;
  std::vector<NamedBreakEven> break_even;
};

/// Reads a file's text. `name` stands in messages.
///
/// Errors:
///   kInvalidArgument  not TOML, a key that is unknown, missing or out of
///   range:
///                     says which, where and what it may be
Result<SimulationFile> parse_simulation_file(std::string_view text,
                                             const std::string& name);

}  // namespace leat
