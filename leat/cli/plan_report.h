// The report of `leat plan`, as JSON and as a table.
#pragma once
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "leat/cli/simulation_file.h"
#include "leat/plan/sweep.h"

namespace leat {

/// Reads, hits, GETs, bytes and seconds of all epochs, and the cost.
nlohmann::ordered_json totals_json(const SimulationReport& report,
                                   const SimulationOptions& options,
                                   const Prices& prices,
                                   const Billing& billing);

nlohmann::ordered_json simulation_json(const NamedSimulation& simulation,
                                       const SimulationReport& report);
nlohmann::ordered_json deli_json(const NamedDeli& deli,
                                 const std::vector<DeliEpoch>& epochs);
nlohmann::ordered_json solar_json(const NamedSolar& solar,
                                  const std::vector<SolarEpoch>& epochs);
nlohmann::ordered_json packing_json(const PackingCost& packing);

/// Dollars with the digits that say something: "12.24", "0.00043", "0".
std::string format_dollars(double dollars);

/// A name in one line, with any bytes of the file.
std::string in_a_line(const nlohmann::ordered_json& name);

/// One row each: `rows` are objects with "name" and what totals_json() says.
void print_totals(const nlohmann::ordered_json& rows, std::ostream& out);

}  // namespace leat
